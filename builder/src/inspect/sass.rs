//! Machine code as text, beside the source: nvdisasm's output for one entry point.

use std::path::Path;
use std::process::Command;

use super::listing::Attribution;
use super::{CompiledKernel, Listing, Place, Sources};
use crate::cache;
use crate::error::Error;
use crate::toolchain::process;

/// The machine code of `kernel` in `cubin`, by the nvdisasm at `program`; cached beside the cubin.
///
/// # Errors
/// [`Error::Program`] with the output of nvdisasm.
pub fn disassemble(
    program: &Path,
    cubin: &Path,
    kernel: &CompiledKernel,
    sources: &Sources,
) -> Result<Listing, Error> {
    let remembered =
        cubin.with_extension(format!("{}.sass", cache::key(process::identity(program).as_bytes())));
    let text = match std::fs::read_to_string(&remembered) {
        Ok(text) => text,
        Err(_) => {
            let text = process::run_checked("nvdisasm", Command::new(program).args(["-g", "-c"]).arg(cubin))?;
            cache::write(&remembered, &text)?;
            text
        }
    };
    Ok(listing(&text, kernel, sources))
}

fn listing(text: &str, kernel: &CompiledKernel, sources: &Sources) -> Listing {
    let mut attribution = Attribution::new(kernel, sources);
    let mut listing = Listing::default();
    let section = format!(".text.{}:", kernel.entry);
    let body = text.lines().skip_while(|line| *line != section).skip(1);
    for line in body.take_while(|line| !line.starts_with("//---")).map(str::trim) {
        if let Some(place) = line.strip_prefix("//## File \"") {
            attribution.at(file_and_line(place).unwrap_or(Place { file: String::new(), line: 0 }));
        } else if let Some((offset, instruction)) = line.strip_prefix("/*").and_then(|it| it.split_once("*/"))
        {
            let instruction = instruction.trim().trim_end_matches(';').trim_end();
            listing.lines.push(attribution.line(&format!("{offset}  {instruction}")));
        } else if line.ends_with(':') {
            listing.lines.push(attribution.line(line));
        }
    }
    // Padding of the last line of the instruction cache, and a label behind it.
    while listing.lines.last().is_some_and(|line| line.text.ends_with("NOP") || line.text.ends_with(':')) {
        listing.lines.pop();
    }
    listing
}

/// `src/main.rs", line 20`, with more text where code was inlined.
fn file_and_line(text: &str) -> Option<Place> {
    let (file, rest) = text.split_once("\", line ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some(Place { file: file.to_owned(), line: digits.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::super::kernel::tests::fill;
    use super::*;

    const TEXT: &str = "\
\t.section\t.text.fill_f32_8_0123456789abcdef,\"ax\",@progbits
fill_f32_8_0123456789abcdef:
.text.fill_f32_8_0123456789abcdef:
\t//## File \"src/main.rs\", line 3
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File \"/rustc/library/core/src/cmp.rs\", line 1915 inlined at \"src/main.rs\", line 4
        /*0010*/              @!P0 BRA `(.L_x_0) ;
.L_x_0:
\t//## File \"src/main.rs\", line 2
        /*0020*/                   EXIT ;
        /*0030*/                   BRA `(.L_x_0);
        /*0040*/                   NOP;
        /*0050*/                   NOP;
.L_x_1:


//--------------------- .text.other --------------------------
        /*0000*/                   TRAP ;
";

    #[test]
    fn instructions_of_the_entry_point_have_their_lines() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("src")).unwrap();
        std::fs::write(dir.path().join("src/main.rs"), "a\nb\nc\n").unwrap();
        let sources = Sources::new(dir.path().to_owned(), Vec::new(), None);
        let listing = listing(TEXT, &fill(dir.path().join("src/main.rs")), &sources);
        let shown: Vec<(u32, u32, &str)> = listing
            .lines
            .iter()
            .map(|line| {
                let number = |place: &Option<Place>| place.as_ref().map_or(0, |it| it.line);
                (number(&line.source), number(&line.inlined), line.text.as_str())
            })
            .collect();
        let expected = [
            (3, 0, "0000  LDC R1, c[0x0][0x28]"),
            (3, 1915, "0010  @!P0 BRA `(.L_x_0)"),
            (3, 1915, ".L_x_0:"),
            (2, 0, "0020  EXIT"),
            (2, 0, "0030  BRA `(.L_x_0)"),
        ];
        assert_eq!(shown, expected);
    }
}
