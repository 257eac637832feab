//! Edits by parts of the text: unchanged parts stay byte for byte.

use ferrogrid_ptx::{Edits, Module};

const TEXT: &str =
    ".version 8.0 // first\n.target sm_90\n\t.file 1 \"a.rs\"\n.visible .entry k()\n{\n\tret; // last\n}\n";

fn edited(change: impl FnOnce(&Module<'_>, &mut Edits<'_>)) -> String {
    let module = Module::parse(TEXT).unwrap();
    let mut edits = Edits::new(TEXT);
    change(&module, &mut edits);
    edits.apply()
}

#[test]
fn nothing_is_changed_by_no_edits() {
    assert_eq!(edited(|_, edits| assert!(edits.is_empty())), TEXT);
}

#[test]
fn parts_are_replaced_removed_and_put_before_and_behind() {
    let text = edited(|module, edits| {
        let kernel = module.entry("k").unwrap();
        let body = kernel.body.as_ref().unwrap();
        edits.insert_before(body.text, ".maxntid 1\n");
        edits.insert_after(kernel.name, "_2");
        edits.replace(body.statements[0].text, "trap;");
        edits.insert_line_after(body.statements[0].text, "\texit;\n");
        assert!(!edits.is_empty());
    });
    let expected = TEXT
        .replace("k()", "k_2()")
        .replace("\n{", "\n.maxntid 1\n{")
        .replace("ret; // last\n", "trap; // last\n\texit;\n");
    assert_eq!(text, expected);
}

#[test]
fn a_line_is_removed_whole_if_nothing_else_is_on_it() {
    let text = edited(|module, edits| {
        edits.remove_lines(module.files().next().unwrap().text);
        edits.remove_lines(module.items[0].text());
    });
    assert_eq!(text, TEXT.replace("\t.file 1 \"a.rs\"\n", "").replace(".version 8.0 //", " //"));
}

#[test]
fn insertions_at_one_place_keep_their_order_and_removals_drop_edits_inside() {
    let text = edited(|module, edits| {
        let kernel = module.entry("k").unwrap();
        edits.replace(kernel.body.as_ref().unwrap().statements[0].text, "trap;");
        edits.insert_before(kernel.text, "one ");
        edits.insert_before(kernel.text, "two ");
        edits.remove(kernel.text);
    });
    assert_eq!(text, format!("{}one two \n", &TEXT[..TEXT.find(".visible").unwrap()]));
}

#[test]
fn of_two_changes_that_overlap_the_first_is_made() {
    let text = edited(|module, edits| {
        let name = module.entry("k").unwrap().text;
        edits.replace(&name[..9], ".weak ");
        edits.replace(&name[8..10], "lost");
    });
    assert_eq!(text, TEXT.replace(".visible ", ".weak "));
}

#[test]
#[should_panic(expected = "a part of another text")]
fn parts_of_other_texts_are_refused() {
    Edits::new(TEXT).remove("elsewhere");
}
