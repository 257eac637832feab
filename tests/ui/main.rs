//! Compile errors are part of the product: each mistake a user can make has a program here, and the
//! message that rustc must give for it. `TRYBUILD=overwrite` rewrites the messages; read them as a
//! user would before committing them.

#[test]
fn mistakes_in_signatures_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/signature/*.rs");
}

#[test]
fn mistakes_at_the_launch_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/launch/*.rs");
}
