//! Rewrites PTX into fewer machine instructions of the same meaning, where LLVM's back end, which selects
//! instructions one block at a time, has lost what it knew. It must not know what the program computes.
//!
//! - A 64-bit shift, product or comparison of numbers that fit into 32 bits becomes `mul.wide.u32`,
//!   `mad.wide.u32` or a comparison of 32 bits. ptxas takes one instruction for these and two to four else; it does
//!   not find out by itself.
//! - A loop of one block from a constant to a constant compares 32 bits at its end, so that its count has no upper half
//!   to be kept and added to.
//! - An address that was made generic only to be made shared or global again stays what it was, and a generic
//!   access to the block's shared memory becomes a shared one.
//!
//! What is known of a register that a single instruction defines holds wherever it is used. Its low half, or what it
//! was made of, is put into another register just behind that instruction, so that the two always go together;
//! ptxas makes nothing of such copies.

mod counters;
mod function;
mod narrow;
mod spaces;

use function::Function;

/// The text with those changes in the body of each function.
pub(crate) fn rewrite(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 64);
    let mut body: Option<Vec<&str>> = None;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        match &mut body {
            None => {
                out.push_str(line);
                if content == "{" {
                    body = Some(Vec::new());
                }
            }
            Some(lines) if content != "}" => lines.push(line),
            Some(lines) => {
                let mut function = Function::parse(lines);
                spaces::rewrite(&mut function);
                narrow::rewrite(&mut function);
                counters::rewrite(&mut function);
                function.write(&mut out);
                out.push_str(line);
                body = None;
            }
        }
    }
    // What does not end is for ptxas to report.
    out.extend(body.into_iter().flatten());
    out
}

/// The body of an entry point that had these `lines`.
#[cfg(test)]
fn rewritten_body(lines: &str) -> String {
    let text = format!(".visible .entry k()\n{{\n{lines}}}\n");
    let rewritten = rewrite(&text);
    rewritten.strip_prefix(".visible .entry k()\n{\n").unwrap().strip_suffix("}\n").unwrap().to_owned()
}
