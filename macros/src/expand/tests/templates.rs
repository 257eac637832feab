//! Kernels that are written as their operation on one element.

use super::{between, has, has_not, on_device, on_host};

const AXPY: &str = "mod m { #[elementwise] pub fn axpy(a: f32, x: &f32, y: &mut f32) { *y += a * x; } }";

#[test]
fn an_elementwise_function_becomes_a_kernel_that_takes_no_grid() {
    let (host, device) = (on_host(AXPY), on_device(AXPY));
    has(
        &host,
        "pub fn axpy<'p2,'p3,>(stream:&p::Stream,a:f32,x:impl p::LaunchInput<'p2,f32,1usize>,\
         y:impl p::LaunchOutput<'p3,f32,1usize>,)->p::Result<()>",
    );
    has(&host, "let __grid=p::Grid::<1usize>::blocks(p::longest(&__p2).div_ceil(1024usize));");
    has(&host, "p::same_shape(&__FERROGRID_KERNEL_axpy,(\"x\",&__p2),(\"y\",&__p3))?;");
    // Its threads wait for no others, whatever they are passed to.
    has(&host, "__block.for_each_thread");
    has_not(&host, "for_each_waiting_thread");
    has_not(&host, "__ferrogrid_grid_axpy");
    has(&device, "fn __ferrogrid_element_axpy(a:f32,x:&f32,y:&mut f32){*y+=a*x;}");
    has(&device, "fn axpy(__t:d::Thread<1>,a:f32,x:&[f32],mut y:d::DisjointWarps<f32,4usize,1>)");
}

#[test]
fn a_thread_has_the_elements_of_16_bytes() {
    for (element, run) in [
        ("u8", 16),
        ("f16", 8),
        ("f32", 4),
        ("[f32; 2]", 2),
        ("f64", 2),
        ("[f32; 4]", 1),
        ("[f64; 3]", 1),
        ("Named", 1),
    ] {
        let text = format!("mod m {{ #[elementwise] fn k(x: &u8) -> {element} {{ f(x) }} }}");
        let device = on_device(&text);
        has(&device, &format!("mut out:d::DisjointWarps<{element},{run}usize,1>"));
        if run == 1 {
            has_not(&device, "__items_out");
            continue;
        }
        let calls = between(&device, "let__items_out=[", "];");
        assert_eq!(calls.matches("__ferrogrid_element_k(").count(), run, "{element}");
    }
}

const NORM: &str = "mod m { #[reduction(T = [f32], fast_math, identity = T::ZERO, combine = |a, b| a + b, \
                    finish = |sum: f64| -> f32 { sum as f32 })] \
                    pub fn norm<T: Float>(scale: T, x: &T, y: &T, #[index] i: usize) -> f64 { f(scale, x, y, i) } }";

#[test]
fn a_reduction_becomes_two_kernels_and_two_functions() {
    let (host, device) = (on_host(NORM), on_device(NORM));
    has(
        &device,
        "fn norm_in_blocks<T:Float>(__t:d::Thread<1>,scale:T,x:&[T],y:&[T],mut out:d::DisjointChunks<f64,1>,",
    );
    has(
        &device,
        "fn norm_of_blocks<T:Float>(__t:d::Thread<1>,values:&[f64],mut out:d::DisjointChunks<f32,1>,",
    );
    has(
        &device,
        "__ferrogrid_element_norm::<T>(scale,&__items[15usize],__items_y.get(15usize),__first+15usize*256usize)]",
    );
    has(&device, "__ferrogrid_element_norm::<T>(scale,&__item,&y[__i],__i)");
    has(&host, "pub fn norm<'p1,'p2,T:Float>(stream:&p::Stream,scale:T,x:impl p::DeviceInput<'p1,T>,");
    has(&host, "out:impl p::DeviceOutput<'out,f32>,");
    has(&host, "p::in_two_steps::<f64,f32>(stream,x.len(),");
    has(&host, "norm_in_blocks::<T>(stream,__grid,scale,x,y,__values)");
    let plain = on_host(
        "mod m { #[reduction(identity = 0.0, combine = |a, b| a + b)] fn sum(x: &f32) -> f32 { *x } }",
    );
    has(&plain, "p::in_steps::<f32>(stream,x.len(),");
}

const BALANCE: &str = "mod m { #[scan(T = [f32], exclusive, max_registers = 64, identity = 0.0, combine = add, \
                       finish = |all| -> u8 { f(start, all) })] \
                       pub fn balance<T: Float>(start: f64, x: &T, #[index] i: usize, y: &u8) -> f64 { g(x, i, y) } }";

#[test]
fn a_scan_becomes_a_kernel_that_takes_no_grid() {
    let (host, device) = (on_host(BALANCE), on_device(BALANCE));
    has(
        &host,
        "stream:&p::Stream,start:f64,x:impl p::LaunchInput<'p2,T,1usize>,y:impl p::LaunchInput<'p3,u8,1usize>,out:",
    );
    has(&host, "let __grid=p::Grid::<1usize>::blocks(p::longest(&__p2).div_ceil(4096usize));");
    has(&host, ",(\"x\",&__p2),(\"out\",&__p4))?;");
    // Its threads wait for others.
    has(&host, "for_each_waiting_thread");
    has(&device, "mut out:d::DisjointWarps<u8,512usize,32,2usize>,__order:d::BlockOrder<f64>");
    has(&device, "__ferrogrid_element_balance::<T>(start,__item_x,__own+449usize,__item_y)");
    has(&device, "__ferrogrid_finish_balance::<T>(start,__totals[7usize][1usize])");
    has(&device, "__scanned.exclusive(");
    let small =
        on_device("mod m { #[scan(identity = 0, combine = max)] fn k(x: &[u8], y: &u8) -> u32 { f(y) } }");
    has(&small, "mut out:d::DisjointWarps<u32,1024usize,32,4usize>");
    has(&small, "__scanned.inclusive(");
    has_not(&small, "__ferrogrid_finish_k");
}

const LAYER: &str = "mod m { #[matmul(factors = bf16, transpose_a, fast_math)] pub fn layer(sum: f32, scale: f32, \
                     #[column] bias: &f32, table: Plane<u8>, residual: &bf16, #[row] i: usize) -> f16 { f(sum) } }";

#[test]
fn a_product_becomes_kernels_of_three_tiles_and_the_type_of_its_function() {
    let (host, device) = (on_host(LAYER), on_device(LAYER));
    has(&device, "const __FERROGRID_LAYER_WIDTH:usize=128/::core::mem::size_of::<bf16>();");
    has(&device, "struct __FerrogridSums_layer<P0,P1,P2,P3>(P0,P1,P2,P3);");
    has(
        &device,
        "impl d::matrix::SumFunction<f32,f16>for __FerrogridSums_layer<f32,&[f32],d::Plane<'_,u8>,d::Plane<'_,bf16>>",
    );
    has(
        &device,
        "__ferrogrid_element_layer(__sum,scale,d::matrix::nearest(bias,__column)?,table,\
         d::matrix::nearest_of_plane(residual,__row,__column)?,__row)",
    );
    // Both factors are stored by their columns: the right one, because it is not the transpose.
    has(
        &device,
        "fn layer_large(__t:d::Thread<1>,a:d::TensorMap<bf16,__FERROGRID_LAYER_WIDTH,__FERROGRID_LAYER_WIDTH>,",
    );
    has(
        &device,
        "d::matrix::multiply_and_store::<bf16,f16,64usize,64usize,3usize,_>(&__t,__memory,a.transposed(),b.transposed(),",
    );
    let plain = on_device("mod m { #[matmul(factors = i8, transpose_b)] fn k(sum: i32) -> i32 { sum } }");
    has(&plain, "b:d::TensorMap<i8,__FERROGRID_K_WIDTH,256usize>");
    has_not(&plain, ".transposed()");
    has(
        &host,
        "pub fn layer<'a,'b,'p1,'p2,'p3,'out>(stream:&p::Stream,a:impl::core::convert::Into<p::PitchedView<'a,bf16>>,\
         b:impl::core::convert::Into<p::PitchedView<'b,bf16>>,\
         scale:f32,bias:impl p::DeviceInput<'p1,f32>,table:impl p::LaunchInput<'p2,u8,2usize>,residual:p::DeviceView<'p3,bf16,2>,",
    );
    has(
        &host,
        "[true,false],p::Several::Batches(1),p::ProductInputs{planes:&[[residual.width(),residual.height()]],of_rows:&[],of_columns:&[bias.len()],}",
    );
    has(&host, "p::ProductTile::Narrow=>layer_narrow(stream,__grid,a,b,scale,bias,table,residual,__out)?,");
}

#[test]
fn parts_of_a_product_have_two_kernels_of_their_own() {
    let text = "mod m { #[matmul(factors = f16, transpose_b, fast_math)] fn k(sum: f32, #[row] x: &f32) -> bf16 { f(sum, x) } }";
    let (host, device) = (on_host(text), on_device(text));
    // The first one stores sums, and knows nothing of the function.
    has(&device, "__parts:[u64;2],__sums:&[d::DeviceAtomic<u64>],__memory:");
    has(
        &device,
        "d::matrix::multiply_parts::<f16,64usize,128usize,4usize,_>(&__t,__memory,a,b,d::matrix::Several::One,__parts,__sums,)",
    );
    has(&device, "fn k_store_parts(__t:d::Thread<1>,__extents:[u64;4],__sums:&[f32],x:&[f32],out:&[");
    has(&device, "d::matrix::store_parts(&__t,__sums,__extents,out,__FerrogridSums_k(x));");
    has(&host, "k_of_parts(stream,__grid,a,b,__parts.depth,__words)?;");
    has(&host, "k_store_parts(stream,__parts.grid,__parts.extents,__sums,x,__planned.out()?)?;");
    // Those of groups would be added up in rows of no group, too.
    let text = "mod m { #[matmul(factors = i8, transpose_b, groups)] fn k(sum: i32) -> i32 { sum } }";
    has_not(&on_device(text), "__parts");
    has_not(&on_host(text), "__parts");
}

#[test]
fn a_product_has_batches_or_groups_of_rows() {
    let text =
        "mod m { #[matmul(factors = f16, batches)] fn k(sum: f32, #[batch] i: usize) -> f32 { f(sum, i) } }";
    let (host, device) = (on_host(text), on_device(text));
    has(&device, "let __depth=a.width();d::matrix::multiply_and_store::<");
    has(
        &device,
        "a,b.transposed_each(__depth),d::matrix::Several::Batches(__batches as usize),::core::option::Option::None,out,",
    );
    has(&device, "__ferrogrid_element_k(__sum,__matrix)");
    has(&host, "batches:usize,out:");
    has(&host, "p::Several::Batches(batches),");
    has(&host, "k_large(stream,__grid,a,b,batches as u64,__out)");
    let text = "mod m { #[matmul(factors = i8, transpose_b, groups)] fn k(sum: i32) -> i32 { sum } }";
    let (host, device) = (on_host(text), on_device(text));
    has(
        &device,
        "a,b,d::matrix::Several::Groups(__groups),::core::option::Option::Some(__rows.into_rows()),out,",
    );
    has(&host, "<'a,'b,'groups,'out>");
    has(&host, "groups:impl p::DeviceInput<'groups,u32>,out:");
    has(&host, "p::Several::Groups(groups.len()),");
}

const BY_DAY: &str = "mod m { #[comparison(merge_sort, set_union, max_registers = 64)] pub fn by_day(a: &Event, b: &Event) -> bool { f(a, b) } }";

#[test]
fn a_comparison_becomes_the_kernels_of_the_functions_that_it_lists() {
    let (host, device) = (on_host(BY_DAY), on_device(BY_DAY));
    has(&device, "const __FERROGRID_ITEMS_BY_DAY:usize=d::ordered::items::<Event>();");
    has(&device, "fn by_day(a:&Event,b:&Event)->bool{f(a,b)}");
    for kernel in ["sort_tiles", "splits", "merge_tiles", "set_ends", "set_take"] {
        has(&device, &format!("fn by_day_{kernel}(t:d::Thread<1>,"));
    }
    has_not(&device, "by_day_bounds");
    has(&host, "pub mod by_day{");
    for function in ["merge_sort<", "set_union<", "set_union_into<"] {
        has(&host, &format!("pub fn {function}"));
    }
    for function in ["merge<", "lower_bound<", "upper_bound<", "set_difference<"] {
        has_not(&host, &format!("pub fn {function}"));
    }
    let all = on_host("mod m { #[comparison] fn less(a: &u8, b: &u8) -> bool { a < b } }");
    for function in
        ["merge_sort<", "merge<", "lower_bound<", "upper_bound<", "set_symmetric_difference_into<"]
    {
        has(&all, &format!("pub fn {function}"));
    }
}

/// A disabled template leaves nothing in the expansion.
#[test]
fn conditions_hold_for_all_that_is_made_of_a_template() {
    for text in [AXPY, NORM, BALANCE] {
        let text = text.replace("#[elementwise]", "#[cfg(any())] #[elementwise]");
        let text = text.replace("#[scan", "#[cfg(any())] #[scan");
        let text = text.replace("#[reduction", "#[cfg(any())] #[reduction");
        for half in [on_host(&text), on_device(&text)] {
            let functions = half.matches("__ferrogrid_element_").count();
            assert!(functions > 0 && half.contains("#[cfg(any())]"), "{half}");
            for (before, _) in half.match_indices("fn__ferrogrid_") {
                let start = half[..before].rfind("#[cfg(any())]").expect("a condition");
                assert!(before - start < 300, "{}", &half[start..before]);
            }
        }
    }
}
