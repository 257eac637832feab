//! Pictures of a graph: DOT for Graphviz (`dot`), and a layered SVG drawn here.

pub(crate) mod dot;

use std::fmt::Write;

use super::{DotOptions, Graph};
use crate::backend::operation::Node;

/// Pixels of a node, and between nodes.
const WIDTH: usize = 200;
const HEIGHT: usize = 44;
const GAP: usize = 36;

/// Characters that fit in a node.
const CHARACTERS: usize = 30;

impl Graph<'_> {
    /// The graph in the language of Graphviz (as `cuGraphDebugDotPrint`): `dot -Tsvg` draws it.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut data = stream.zeros::<u8>(4)?;
    /// let (graph, ()) = stream.capture(|capture| {
    ///     let mut data = capture.write(&mut data)?;
    ///     capture.fill_into(1, &mut data)?;
    ///     capture.launch_host_func(|| println!("filled")).map(drop)
    /// })?;
    /// assert!(graph.to_dot().contains("n0 -> n1;"));
    /// # Ok(()) }
    /// ```
    pub fn to_dot(&self) -> String {
        self.draw_dot(DotOptions::new())
    }

    pub(super) fn draw_dot(&self, options: DotOptions) -> String {
        let mut text = String::from("digraph {\n    node [shape=box];\n");
        write_dot(&mut text, "n", &self.nodes, options);
        text.push_str("}\n");
        text
    }

    /// The graph as a picture: each node is below its dependencies.
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// let mut data = stream.zeros::<u8>(4)?;
    /// let (graph, ()) = stream.capture(|capture| {
    ///     let mut data = capture.write(&mut data)?;
    ///     capture.fill_into(1, &mut data)?;
    ///     capture.launch_host_func(|| println!("filled")).map(drop)
    /// })?;
    /// let picture = graph.to_svg(); // for `std::fs::write("graph.svg", picture)`
    /// assert!(picture.starts_with("<svg") && picture.contains("0: fill"), "{picture}");
    /// # Ok(()) }
    /// ```
    pub fn to_svg(&self) -> String {
        let places = arrange(&self.nodes);
        let columns = places.iter().map(|place| place.0 + 1).max().unwrap_or(0);
        let rows = places.iter().map(|place| place.1 + 1).max().unwrap_or(0);
        let (width, height) = (columns * (WIDTH + GAP) + GAP, rows * (HEIGHT + GAP) + GAP);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"monospace\" font-size=\"11\">\n\
             <defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\"/></marker></defs>\n"
        );
        for (number, node) in self.nodes.iter().enumerate() {
            node.after.iter().for_each(|&before| edge(&mut text, places[before], places[number]));
        }
        for (number, node) in self.nodes.iter().enumerate() {
            draw(&mut text, places[number], &format!("{number}: {}", node.operation.label()));
        }
        text.push_str("</svg>\n");
        text
    }
}

/// Writes nodes whose names start with `prefix`; the nodes of a body are in a box.
fn write_dot(text: &mut String, prefix: &str, nodes: &[Node], options: DotOptions) {
    for (number, node) in nodes.iter().enumerate() {
        let lines = [node.operation.label()].into_iter().chain(options.details(node));
        let label = lines
            .collect::<Vec<_>>()
            .join("\n")
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let _infallible = writeln!(text, "    {prefix}{number} [label=\"{number}: {label}\"];");
        for before in &node.after {
            let _infallible = writeln!(text, "    {prefix}{before} -> {prefix}{number};");
        }
        let body = node.operation.body();
        if body.is_empty() {
            continue;
        }
        let inner = format!("{prefix}{number}_");
        let _infallible = writeln!(text, "    subgraph cluster_{prefix}{number} {{");
        write_dot(text, &inner, body, options);
        text.push_str("    }\n");
        for first in (0..body.len()).filter(|&first| body[first].after.is_empty()) {
            let _infallible = writeln!(text, "    {prefix}{number} -> {inner}{first} [style=dashed];");
        }
    }
}

/// Column and row of each node: the row is the length of the longest path to it.
fn arrange(nodes: &[Node]) -> Vec<(usize, usize)> {
    let mut places: Vec<(usize, usize)> = Vec::with_capacity(nodes.len());
    let mut filled: Vec<usize> = Vec::new();
    for node in nodes {
        let row = node.after.iter().map(|&before| places[before].1 + 1).max().unwrap_or(0);
        if filled.len() <= row {
            filled.resize(row + 1, 0);
        }
        places.push((filled[row], row));
        filled[row] += 1;
    }
    places
}

/// The upper left corner of the node at a place.
fn corner((column, row): (usize, usize)) -> (usize, usize) {
    (GAP + column * (WIDTH + GAP), GAP + row * (HEIGHT + GAP))
}

fn edge(text: &mut String, from: (usize, usize), to: (usize, usize)) {
    let ((x1, y1), (x2, y2)) = (corner(from), corner(to));
    let (x1, y1, x2) = (x1 + WIDTH / 2, y1 + HEIGHT, x2 + WIDTH / 2);
    // Past other nodes in between, beside them.
    let bend = if to.1 > from.1 + 1 { WIDTH / 2 + GAP / 2 } else { 0 };
    let (cx1, cx2) = (x1 + bend, x2 + bend);
    let (cy1, cy2) = (y1 + GAP / 2, y2 - GAP / 2);
    let _infallible = writeln!(
        text,
        "<path d=\"M{x1},{y1} C{cx1},{cy1} {cx2},{cy2} {x2},{y2}\" fill=\"none\" stroke=\"black\" marker-end=\"url(#tip)\"/>"
    );
}

fn draw(text: &mut String, place: (usize, usize), label: &str) {
    let (x, y) = corner(place);
    let _infallible = writeln!(
        text,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"4\" fill=\"#eef\" stroke=\"black\"/>"
    );
    for (number, line) in label.lines().enumerate() {
        let (x, y) = (x + 8, y + 18 + 15 * number);
        let _infallible = writeln!(text, "<text x=\"{x}\" y=\"{y}\">{}</text>", escape(line));
    }
}

/// At most that many characters of `line`, the last of them, as text of an SVG.
fn escape(line: &str) -> String {
    let skip = line.chars().count().saturating_sub(CHARACTERS);
    let shown: String = line.chars().skip(skip).collect();
    shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
