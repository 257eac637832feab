//! A bench of two small cases, for the tests of this package.

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn double(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = 2.0 * x[i.get()];
        }
    }
}

fn main() -> std::process::ExitCode {
    ferrogrid_bench::main("tiny", |bench| {
        let n = bench.size(1 << 16, 1 << 12);
        let stream = bench.stream();
        let x = stream.fill(1.0_f32, n)?;
        let mut y = stream.zeros::<f32>(n)?;
        bench
            .case("double")
            .bytes(8 * n)
            .flops(n)
            .sweep(&[64, 256, 4096])
            .run(|launch| kernels::double(launch.stream(), launch.cover(n), &x, &mut y))?;
        bench.case("fill").bytes(4 * n).run(|launch| launch.stream().fill_into(3.0, &mut y))?;
        Ok(())
    })
}
