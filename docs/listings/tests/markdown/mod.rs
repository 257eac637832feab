//! Parses the book's chapters as mdBook does, and the parts of listings that chapters show.

#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A block of code: its info string, and the text.
#[derive(Default)]
pub struct Block {
    pub info: String,
    pub text: String,
    /// The listing that it shows, `FILE:ANCHOR`, by the comment before it: `<!-- listing: FILE:ANCHOR -->`.
    pub listing: Option<String>,
}

impl Block {
    /// The language, and the words after it.
    pub fn words(&self) -> (&str, Vec<&str>) {
        let mut words = self.info.split(',').map(str::trim);
        (words.next().unwrap_or_default(), words.collect())
    }
}

/// A chapter's file.
#[derive(Default)]
pub struct Chapter {
    pub blocks: Vec<Block>,
    pub links: Vec<String>,
    /// The anchors of its headings.
    pub anchors: BTreeSet<String>,
    pub titles: usize,
}

/// The folder `docs` of the repository.
pub fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All Markdown files below `docs/src`.
pub fn files() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&docs().join("src"), &mut found);
    found.sort();
    assert!(found.len() > 15, "too few files for the book: {found:?}");
    found
}

/// The book's files, and the README.
pub fn pages() -> Vec<PathBuf> {
    let mut pages = files();
    pages.push(docs().parent().unwrap().join("README.md"));
    pages
}

pub fn chapter(path: &Path) -> Chapter {
    parse(&std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

pub fn parse(text: &str) -> Chapter {
    let mut chapter = Chapter::default();
    let mut heading: Option<String> = None;
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut listing: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Html(html) => listing = comment(&html).map(str::to_owned),
            Event::Start(Tag::CodeBlock(kind)) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => "indented".to_owned(),
                };
                chapter.blocks.push(Block { info, listing: listing.take(), ..Block::default() });
            }
            Event::Text(part) if heading.is_none() => {
                // Only blocks keep text; text between them is dropped.
                if let Some(block) = chapter.blocks.last_mut() {
                    block.text.push_str(&part);
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                chapter.blocks.push(Block { info: "-".into(), ..Block::default() })
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                chapter.links.push(dest_url.to_string());
            }
            Event::Start(Tag::Heading { level, .. }) => {
                chapter.titles += usize::from(level == HeadingLevel::H1);
                heading = Some(String::new());
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = slug(&heading.take().unwrap_or_default());
                let count = seen.entry(anchor.clone()).or_insert(0);
                chapter.anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
                *count += 1;
            }
            Event::Start(Tag::Paragraph) => listing = None,
            _ => {}
        }
    }
    chapter.blocks.retain(|block| block.info != "-");
    chapter
}

/// The listing that a comment names.
pub fn comment(line: &str) -> Option<&str> {
    line.trim().strip_prefix("<!-- listing: ")?.strip_suffix(" -->")
}

/// A heading's anchor, as mdBook and GitHub generate it.
fn slug(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The part of a listing that `FILE:ANCHOR` names, as a chapter in `folder` shows it: from `// ANCHOR: NAME` to
/// `// ANCHOR_END: NAME`, without other such lines, moved to the left.
pub fn listing(name: &str, folder: &Path) -> Result<String, String> {
    let (file, anchor) = name.rsplit_once(':').ok_or_else(|| format!("{name:?} is not FILE:ANCHOR"))?;
    let path = folder.join(file).canonicalize().map_err(|_| format!("there is no {file}"))?;
    let root = docs().join("..").canonicalize().unwrap();
    let tested = ["tests/book", "src/bin", "optics/src", "build.rs"]
        .map(|place| root.join("docs/listings").join(place));
    if !tested.iter().chain([&root.join("examples")]).any(|place| path.starts_with(place)) {
        return Err(format!("{file} is not among the listings that tests run"));
    }
    let text = std::fs::read_to_string(path).unwrap();
    let places = |mark: &str| {
        let mark = format!("// {mark}: {anchor}");
        text.lines().enumerate().filter(|(_, line)| line.trim() == mark).map(|(at, _)| at).collect::<Vec<_>>()
    };
    let (starts, ends) = (places("ANCHOR"), places("ANCHOR_END"));
    let ([start], [end]) = (starts.as_slice(), ends.as_slice()) else {
        return Err(format!(
            "`{anchor}` starts {} times and ends {} times in {file}",
            starts.len(),
            ends.len()
        ));
    };
    let lines = text.lines().take(*end).skip(start + 1);
    let lines: Vec<&str> = lines.filter(|line| !line.trim_start().starts_with("// ANCHOR")).collect();
    let inked = lines.iter().filter(|line| !line.trim().is_empty());
    let margin = inked.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    Ok(lines.iter().map(|line| format!("{}\n", line.get(margin..).unwrap_or_default())).collect())
}

/// The text of a chapter in `folder` with all its listings as they are now.
///
/// # Errors
/// If there is no such listing.
pub fn renewed(text: &str, folder: &Path) -> Result<String, String> {
    let mut lines = text.lines();
    let mut renewed = String::new();
    while let Some(line) = lines.next() {
        renewed += &format!("{line}\n");
        let Some(name) = comment(line) else { continue };
        renewed += &format!("```rust,ignore\n{}```\n", listing(name, folder)?);
        // The previous block.
        let has_block =
            lines.next().is_some_and(|line| line.starts_with("```")) && lines.any(|line| line == "```");
        if !has_block {
            return Err(format!("there is no block below the comment of {name}"));
        }
    }
    Ok(renewed)
}
