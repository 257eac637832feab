//! Expansions and errors of the derives.

use super::*;

fn text(derived: Result<TokenStream>) -> String {
    derived.unwrap().to_string().replace(char::is_whitespace, "").replace("::ferrogrid::__derive::", "d::")
}

fn refusal(derive: fn(&DeriveInput) -> Result<TokenStream>, item: &str) -> String {
    derive(&syn::parse_str(item).unwrap()).unwrap_err().to_string()
}

fn copy(item: &str) -> String {
    text(device_copy(&syn::parse_str(item).unwrap()))
}

fn form(item: &str) -> String {
    text(atomic_form(&syn::parse_str(item).unwrap()))
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{part}\nis not in\n{text}");
}

const PAIR: &str = "#[repr(C)] struct Pair<T> { a: T, b: [[T; 2]; N] }";

#[test]
fn the_number_of_a_layout_is_made_of_the_fields_in_their_order() {
    has(&copy(PAIR), "unsafeimpl<T:::ferrogrid::DeviceCopy>::ferrogrid::DeviceCopyforPair<T>{");
    has(
        &copy(PAIR),
        "constLAYOUT:u64=d::of_type(\"Pair\",&[(\"a\",<Tas::ferrogrid::DeviceCopy>::LAYOUT),\
         (\"b\",<[[T;2];N]as::ferrogrid::DeviceCopy>::LAYOUT)]);",
    );
    has(
        &copy("#[repr(transparent)] struct One(u8);"),
        "(\"One\",&[(\"0\",<u8as::ferrogrid::DeviceCopy>::LAYOUT)]);",
    );
    has(
        &copy("#[repr(C)] enum E { A(u8, u16), B, C { x: f32 } }"),
        "(\"E\",&[(\"A\",0),(\"0\",<u8as::ferrogrid::DeviceCopy>::LAYOUT),(\"1\",<u16as::ferrogrid::DeviceCopy>::LAYOUT),\
         (\"B\",0),(\"C\",0),(\"x\",<f32as::ferrogrid::DeviceCopy>::LAYOUT)]);",
    );
}

#[test]
fn layouts_that_are_not_defined_are_refused() {
    for (item, reason) in [
        ("struct S { a: u32 }", "add `#[repr(C)]` to the struct"),
        ("#[repr(align(8))] struct S { a: u32 }", "add `#[repr(C)]` to the struct"),
        ("enum E { A, B }", "such as `#[repr(u32)]`"),
        ("#[repr(C)] enum E { A, B }", "such as `#[repr(u32)]`"),
        ("enum E { A(u32), B }", "such as `#[repr(u8)]`"),
        ("#[repr(C)] union U { a: u32 }", "for a union"),
        ("#[repr(C, packed)] struct S { a: u32 }", "cannot be packed"),
        ("#[repr(C)] #[device_copy(other)] struct S { a: u32 }", "unknown option"),
    ] {
        assert!(refusal(device_copy, item).contains(reason), "{item}");
    }
    for item in [
        "#[repr(C, align(16))] struct S { a: u32 }",
        "#[repr(u8)] enum E { A, B }",
        "#[repr(i16)] enum E { A(u32), B }",
    ] {
        copy(item);
    }
}

/// Each trait has a bound for every field, which the compiler evaluates.
#[test]
fn traits_of_all_fields_are_implemented_for_the_struct() {
    let pair = copy(PAIR);
    for name in ["Zeroable", "AnyBits", "SharedElement", "ClusterElement", "Pod"] {
        let bound = if ["SharedElement", "ClusterElement"].contains(&name) { "AnyBits" } else { name };
        has(
            &pair,
            &format!(
                "unsafeimpl<T:::ferrogrid::DeviceCopy>d::{name}forPair<T>where\
                 for<'__field>T:d::{bound},for<'__field>[[T;2];N]:d::{bound}{{}}"
            ),
        );
    }
    has(
        &pair,
        "fnfields<T:::ferrogrid::DeviceCopy>(__it:&Pair<T>){letPair{a:_,b:_}=__it;let_:*constT=&rawconst__it.a;let_:*const[[T;2];N]=&rawconst__it.b;}",
    );
    let tuple = copy("#[repr(C)] struct P(f32, u8);");
    has(&tuple, "letP{0:_,1:_}=__it;");
}

/// Plain old data has no padding: sizes are compared where they are known, types where they are not.
#[test]
fn only_types_without_padding_are_plain_old_data() {
    has(
        &copy("#[repr(C)] struct P { a: f32, b: u8 }"),
        "d::PodforPwherefor<'__field>f32:d::Pod,for<'__field>u8:d::Pod,\
         for<'__field>d::Padding<{::core::mem::size_of::<P>()-::core::mem::size_of::<f32>()-::core::mem::size_of::<u8>()}>:d::NoPadding{}",
    );
    let is_pod = |item: &str| copy(item).contains("d::Podfor");
    assert!(is_pod(PAIR) && !copy(PAIR).contains("d::Padding<"));
    assert!(!is_pod("#[repr(C)] struct P<T> { a: T, b: u8 }"));
    assert!(!is_pod("#[repr(C, align(16))] struct P<T> { a: T, b: [T; 2] }"));
    assert!(is_pod("#[repr(C, align(16))] struct P { a: u64, b: u64 }"));
    assert!(!is_pod("#[repr(C)] struct P<T> {}"));
    // Only the compiler knows whether these are one type.
    has(
        &copy(PAIR),
        "let_:*const[[T;2];N]=&rawconst__it.b;}};#[automatically_derived]unsafeimpl<T:::ferrogrid::DeviceCopy>d::Pod",
    );
}

#[test]
fn structs_are_exchanged_part_by_part() {
    let pair = copy("#[repr(C)] struct P { a: f32, b: u8 }");
    let exchange = |ty: &str| format!("<{ty}asd::Exchange>");
    let (first, second) = (exchange("f32"), exchange("u8"));
    let parts = format!("&[{first}::BYTES,{second}::BYTES]");
    has(&pair, &format!("constBYTES:usize=d::Packed::bytes_of({parts});"));
    has(
        &pair,
        &format!(
            "d::Packed::is_dense({parts},::core::mem::size_of::<Self>())&&{first}::PLAIN&&{second}::PLAIN;"
        ),
    );
    let place = |part: usize| format!("const{{d::Packed::place({parts},{part}usize)}}");
    has(
        &pair,
        &format!("{first}::put(self.a,__to.add({}));{second}::put(self.b,__to.add({}));", place(0), place(1)),
    );
    has(
        &pair,
        &format!(
            "Self{{a:{first}::take(__from.add({})),b:{second}::take(__from.add({}))}}",
            place(0),
            place(1)
        ),
    );
    has(&pair, "d::ExchangeforPwherefor<'__field>f32:d::Exchange,for<'__field>u8:d::Exchange{");
}

#[test]
fn an_enum_without_data_is_its_number_and_may_be_zero_if_a_variant_is() {
    let plain = copy("#[repr(u8)] enum E { A = 1, B }");
    has(&plain, "unsafeimpld::NoUninitforE{}");
    has(
        &plain,
        "unsafeimpld::ZeroableforEwherefor<'__field>d::Variants<{ifE::Aasi128==0{0}elseifE::Basi128==0{0}else{1}}>:d::WithZero{}",
    );
    let with_data = copy("#[repr(u8)] enum E { A(u8), B }");
    assert!(!with_data.contains("NoUninit") && !with_data.contains("Zeroable"), "{with_data}");
    assert!(!plain.contains("AnyBits"), "{plain}");
}

/// Then some bits are not a value.
#[test]
fn a_struct_with_an_invariant_derives_device_copy_only() {
    let derived = copy("#[repr(C)] #[device_copy(invariant)] struct S { a: u32 }");
    assert!(derived.contains("DeviceCopyforS") && !derived.contains("d::Zeroable"), "{derived}");
}

#[test]
fn the_crate_path_follows_the_option() {
    let derived = copy("#[repr(C)] #[device_copy(crate = fg)] struct S { a: u32 }");
    assert!(
        derived.contains("unsafeimpl::fg::DeviceCopyforS") && !derived.contains("::ferrogrid"),
        "{derived}"
    );
}

#[test]
fn structs_that_are_not_copied_are_shared_by_the_threads_of_a_block() {
    let shared = |item: &str| text(shared_element(&syn::parse_str(item).unwrap()));
    let bins = shared("struct Bins<T> { a: DeviceAtomic<T> }");
    for name in ["AnyBits", "SharedElement"] {
        has(
            &bins,
            &format!(
                "unsafeimpl<T:d::AnyBits>d::{name}forBins<T>wherefor<'__field>DeviceAtomic<T>:d::AnyBits{{}}"
            ),
        );
    }
    assert!(!bins.contains("ClusterElement"), "{bins}");
    has(&bins, "fnfields<T:d::AnyBits>(__it:&Bins<T>){letBins{a:_}=__it;");
    assert_eq!(copy(PAIR).matches("fnfields<T").count(), 2, "once for all impls, once for `Pod`");
    assert!(refusal(shared_element, "enum E { A }").contains("can be derived for structs"));
}

#[test]
fn an_atomic_form_has_the_fields_of_its_plain_struct_in_their_places() {
    let derived = form("#[repr(C)] #[atomic_form(Bin)] struct Open { count: DeviceAtomic<u32>, sum: f32 }");
    has(&derived, "fnfields(__plain:&__Plain,__form:&Open){fnis<P,F:d::AtomicField<P>>(_:&P,_:&F){}");
    has(
        &derived,
        "let__Plain{count:__plain0,sum:__plain1}=__plain;letOpen{count:__form0,sum:__form1}=__form;is(__plain0,__form0);is(__plain1,__form1);",
    );
    has(&derived, "type__Plain=Bin;");
    has(
        &derived,
        "::core::mem::size_of::<__Plain>()==::core::mem::size_of::<Open>()&&::core::mem::align_of::<__Plain>()==::core::mem::align_of::<Open>()",
    );
    for field in ["count", "sum"] {
        has(
            &derived,
            &format!("&&::core::mem::offset_of!(__Plain,{field})==::core::mem::offset_of!(Open,{field})"),
        );
    }
    has(
        &derived,
        "unsafeimpld::SliceElementforOpen{constLAYOUT:u64=d::of_atomic(<Binas::ferrogrid::DeviceCopy>::LAYOUT);}",
    );
    has(&derived, "unsafeimpld::AtomicFormforOpen{typeValue=Bin;}");
    has(
        &form("#[repr(transparent)] #[atomic_form(u32)] struct Open(DeviceAtomic<u32>);"),
        "let__Plain{0:__plain0}=__plain;",
    );
    for (item, reason) in [
        ("#[repr(C)] #[atomic_form(Bin)] enum E { A }", "for structs"),
        ("#[atomic_form(Bin)] struct S { a: AtomicU32 }", "needs a defined layout"),
        ("#[repr(C)] #[atomic_form(Bin)] struct S<T> { a: T }", "generic"),
        ("#[repr(C)] struct S { a: AtomicU32 }", "name the struct"),
    ] {
        assert!(refusal(atomic_form, item).contains(reason), "{item}");
    }
}
