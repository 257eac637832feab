//! Listings of the chapter "Graphs".

use ferrogrid::prelude::*;

// ANCHOR: kernels
#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// v <- v - step * x: the spring pulls back.
    #[kernel]
    pub fn pull(t: Thread<1>, step: f32, x: &[f32], mut v: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(v) = v.get_mut(i) {
            *v -= step * x[i.get()];
        }
    }

    /// x <- x + step * v: the mass moves.
    #[kernel]
    pub fn drift(t: Thread<1>, step: f32, v: &[f32], mut x: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(x) = x.get_mut(i) {
            *x += step * v[i.get()];
        }
    }
}
// ANCHOR_END: kernels

#[test]
fn a_graph_is_recorded_by_launches() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: capture
    let n = 1000;
    let x = stream.fill(1.0_f32, n)?;
    let v = stream.zeros::<f32>(n)?;
    let (graph, (x_key, drift)) = stream.capture(|capture| {
        // The graph owns the buffers; `read` and `write` would borrow them.
        let (mut x, mut v) = (capture.keep(x)?, capture.keep(v)?);
        // A named node, with only the dependencies of its buffers, ...
        let pull = capture.node(&[], |s| kernels::pull(s, Grid::cover(n), 0.01, &x, &mut v))?;
        // ... and one after it. Launches on `capture` itself would run one after the other.
        let drift = capture.node(&[pull], |s| kernels::drift(s, Grid::cover(n), 0.01, &v, &mut x))?;
        Ok((x.key(), drift))
    })?;
    let mut graph = graph.instantiate()?;
    for _ in 0..100 {
        graph.launch(&stream)?;
    }
    let x = stream.download(graph.view(x_key)?)?;
    assert!((x[0] - 1.0_f32.cos()).abs() < 0.01); // after time 1
    // ANCHOR_END: capture
    // ANCHOR: disable
    graph.set_enabled(drift, false)?; // the masses stand still
    graph.launch(&stream)?;
    assert_eq!(stream.download(graph.view(x_key)?)?, x);
    // ANCHOR_END: disable
    Ok(())
}

#[test]
fn a_graph_allocates_the_scratch_memory_of_its_launches() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: allocate
    let n = 1000;
    let x = stream.fill(1.0_f32, n)?;
    let (graph, x) = stream.capture(|capture| {
        let mut x = capture.keep(x)?;
        let mut v = capture.zeros::<f32>(n)?; // a node allocates it, at each launch
        kernels::pull(capture, Grid::cover(n), 0.5, &x, &mut v)?;
        kernels::drift(capture, Grid::cover(n), 1.0, &v, &mut x)?;
        drop(v); // another frees it, after all that use it
        Ok(x.key())
    })?;
    let mut graph = graph.instantiate()?;
    for _ in 0..3 {
        graph.launch(&stream)?; // each pulls from rest, halfway
    }
    assert_eq!(stream.download(graph.view(x)?)?, vec![0.125; n]);
    // ANCHOR_END: allocate
    Ok(())
}

#[test]
fn a_graph_copies_from_and_to_page_locked_memory() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: pinned
    let n = 1000;
    let (x, v) = (stream.device().pinned_zeros::<f32>(n)?, stream.fill(1.0_f32, n)?);
    let (graph, x) = stream.capture(|capture| {
        let (mut host, mut v) = (capture.keep_pinned(x)?, capture.keep(v)?);
        let mut x = capture.keep(stream.zeros::<f32>(n)?)?;
        capture.copy(&host, &mut x)?; // an upload, at each launch
        kernels::pull(capture, Grid::cover(n), 0.5, &x, &mut v)?;
        kernels::drift(capture, Grid::cover(n), 1.0, &v, &mut x)?;
        capture.copy(&x, &mut host)?; // a download
        Ok(host.key())
    })?;
    let mut graph = graph.instantiate()?;
    for start in [2.0, 4.0] {
        graph.pinned_mut(x)?.fill(start); // waits for the launches that use it
        graph.launch(&stream)?;
        assert_eq!(graph.pinned(x)?, vec![2.0; n]); // pulled to the same place
    }
    // ANCHOR_END: pinned
    Ok(())
}

#[test]
fn a_graph_copies_for_its_kernels() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    // ANCHOR: staged
    let n = 1000;
    let (x, v) = (stream.device().pinned_zeros::<f32>(n)?, stream.device().pinned_zeros::<f32>(n)?);
    let (graph, (x, v)) = stream.capture(|capture| {
        let (mut x, mut v) = (capture.keep_pinned(x)?, capture.keep_pinned(v)?);
        kernels::pull(capture, Grid::cover(n), 0.5, x.as_in(), v.as_in_out())?;
        kernels::drift(capture, Grid::cover(n), 1.0, v.as_in(), x.as_in_out())?;
        Ok((x.key(), v.key()))
    })?;
    let mut graph = graph.instantiate()?;
    graph.pinned_mut(x)?.fill(2.0);
    graph.launch(&stream)?;
    assert_eq!((graph.pinned(x)?[0], graph.pinned(v)?[0]), (1.0, -1.0));
    // ANCHOR_END: staged
    Ok(())
}
