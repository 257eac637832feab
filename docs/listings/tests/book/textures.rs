//! Listings of the chapter "Textures and surfaces".

use ferrogrid::prelude::*;
use ferrogrid::{AddressMode, Sampler};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    // ANCHOR: rotate
    /// Turns an image around its middle, by the angle with this cosine and sine.
    #[kernel]
    pub fn rotate(t: Thread<2>, cos: f32, sin: f32, image: Texture<f32, 2>, mut out: Surface<f32, 2>) {
        let i = t.index();
        let (x, y) = ((i.x() as f32 + 0.5) / out.width() as f32, (i.y() as f32 + 0.5) / out.height() as f32);
        let (u, v) = (x - 0.5, y - 0.5);
        out.set(i, image.sample(u * cos - v * sin + 0.5, v * cos + u * sin + 0.5));
    }
    // ANCHOR_END: rotate

    // ANCHOR: neighbours
    /// Whether a pixel differs from the one to its right in any of its four channels.
    #[kernel]
    pub fn edges(t: Thread<2>, image: Texture<[u8; 4], 2>, mut out: DisjointSlice<u8, 2>) {
        let i = t.index();
        if let Some(out) = out.get_mut(i) {
            let (x, y) = (i.x() as f32 + 0.5, i.y() as f32 + 0.5);
            *out = u8::from(image.sample(x, y) != image.sample(x + 1.0, y)); // the last pixel is its own neighbour
        }
    }
    // ANCHOR_END: neighbours
}

#[test]
fn an_image_is_turned() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let pixels: Vec<u8> = vec![0, 255, 0, 255];
    // ANCHOR: launch
    let image = stream.upload_array(&pixels, [2, 2])?; // rows of 2 bytes
    let mut turned = stream.zeros_array::<f32, 2>([2, 2])?;
    let sampler = Sampler::new().linear().normalized_coordinates().address_mode(AddressMode::Border);
    let (texture, surface) = (image.texture(&sampler)?, turned.surface()?);
    kernels::rotate(&stream, Grid::cover([2, 2]), 0.0, 1.0, texture, surface)?; // a quarter
    assert_eq!(stream.download_array(&turned)?, [1.0, 1.0, 0.0, 0.0]);
    // ANCHOR_END: launch
    Ok(())
}

#[test]
fn a_graph_turns_an_image() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let pixels: Vec<u8> = vec![0, 255, 0, 255];
    let sampler = Sampler::new().linear().normalized_coordinates().address_mode(AddressMode::Border);
    // ANCHOR: graph
    let image = stream.upload_array(&pixels, [2, 2])?;
    let (mut quarter, mut half) =
        (stream.zeros_array::<f32, 2>([2, 2])?, stream.zeros_array::<f32, 2>([2, 2])?);
    let (graph, ()) = stream.capture(|capture| {
        let image = capture.read_array(&image)?; // other graphs may read it, too
        let mut quarter = capture.write_array(&mut quarter)?; // owned by this graph
        let mut half = capture.write_array(&mut half)?;
        let grid = Grid::cover([2, 2]);
        kernels::rotate(capture, grid, 0.0, 1.0, image.texture(&sampler)?, quarter.surface()?)?;
        kernels::rotate(capture, grid, 0.0, 1.0, quarter.texture(&sampler)?, half.surface()?)
    })?;
    graph.instantiate()?.launch(&stream)?;
    assert_eq!(stream.download_array(&half)?, [1.0, 0.0, 1.0, 0.0]);
    // ANCHOR_END: graph
    Ok(())
}

#[test]
fn pixels_have_neighbours() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let (red, blue) = ([255, 0, 0, 255], [0, 0, 255, 255]);
    let image = stream.upload_array(&[red, red, blue, blue], [4, 1])?;
    let mut out = stream.zeros(4)?;
    let texture = image.texture(&Sampler::new())?;
    kernels::edges(&stream, Grid::cover([4, 1]), texture, out.view_2d_mut(4, 1)?)?;
    assert_eq!(stream.download(&out)?, [0, 1, 0, 0]);
    Ok(())
}
