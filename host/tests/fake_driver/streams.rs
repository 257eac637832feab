//! Streams and events of the fake driver, numbers that streams write and await, and launches.

use super::*;

/// A new stream of the current context.
pub(crate) fn create(flags: u32, priority: i32) -> usize {
    log(&format!("stream flags={flags} priority={priority}"));
    with(|state| {
        let id = state.id();
        state.streams.insert(id, VecDeque::new());
        state.made_in.insert(id, CONTEXT.get());
        id
    })
}

call! { bound:
    fn cuStreamCreateWithPriority(stream: Out<usize>, flags: u32, priority: i32) {
        stream.set(create(flags, priority));
        Ok(())
    }
    fn cuStreamDestroy_v2(stream: Pointer) {
        // The handle is gone at once, the work runs to its end.
        let (stream, gone) = (stream as usize, with(State::id));
        with(|state| {
            assert!(!state.captures.contains_key(&stream), "a capture is ended");
            let queue = state.streams.remove(&stream).expect("destroyed once");
            state.streams.insert(gone, queue);
            state.orders.rename(stream, gone);
            if state.calling.remove(&stream) {
                state.calling.insert(gone);
            }
        });
        drain_later(gone, move || with(|state| {
            state.streams.remove(&gone);
            state.pool.end(stream);
            state.orders.end(gone);
        }));
        Ok(())
    }
    fn cuStreamGetPriority(stream: Pointer, priority: Out<i32>) {
        assert!(is_live(stream));
        priority.set(-1);
        Ok(())
    }
    fn cuStreamGetFlags(stream: Pointer, flags: Out<u32>) {
        assert!(is_live(stream));
        flags.set(u32::from(!is_default(stream)));
        Ok(())
    }
    fn cuStreamIsCapturing(stream: Pointer, status: Out<u32>) {
        assert!(is_live(stream));
        let captured = with(|state| state.captures.contains_key(&(real(stream) as usize)));
        status.set(if captured { 1 } else { number("capturing", 0) as u32 });
        Ok(())
    }
    fn cuStreamBeginCapture_v2(stream: Pointer, mode: u32) {
        assert!(is_live(stream) && !is_default(stream));
        assert_eq!(mode, 2, "a library allocates meanwhile, and other threads do");
        let graph = crate::graph::create();
        let before = with(|state| {
            assert!(state.streams[&(stream as usize)].is_empty());
            state.captures.insert(stream as usize, (graph, Vec::new()))
        });
        assert!(before.is_none(), "captured once");
        Ok(())
    }
    fn cuStreamEndCapture(stream: Pointer, graph: Out<usize>) {
        let (captured, work) = with(|state| state.captures.remove(&(stream as usize))).expect("it is captured");
        crate::graph::add_captured(captured, work);
        graph.set(captured);
        Ok(())
    }
    fn cuStreamGetCaptureInfo_v2(stream: Pointer, status: Out<u32>, id: Out<u64>, graph: Out<usize>, _after: Pointer, _count: Pointer) {
        let captured = with(|state| state.captures.get(&(real(stream) as usize)).map(|(graph, _)| *graph));
        status.set(u32::from(captured.is_some()));
        id.set(captured.unwrap_or(0) as u64);
        graph.set(captured.unwrap_or(0));
        Ok(())
    }
    fn fakeCaptureCall(stream: Pointer, prepare: Prepare, function: Callback, data: Pointer) {
        with(|state| state.push(stream, Work::Prepare { prepare, function, data: data as usize }));
        Ok(())
    }
    fn cuStreamGetCtx(stream: Pointer, context: Out<usize>) {
        if !is_live(stream) {
            return Err(400);
        }
        context.set(number("foreign_context", CONTEXT.get() as u64) as usize);
        Ok(())
    }
    fn cuStreamAddCallback(stream: Pointer, callback: Callback, data: Pointer, _flags: u32) {
        with(|state| state.push(stream, Work::Call { function: callback, data: data as usize }));
        // A thread that waits for a callback makes no call that would let work run.
        if number("held", 0) == 0 {
            drain_later(real(stream) as usize, || ());
        }
        Ok(())
    }
    fn cuEventCreate(event: Out<usize>, flags: u32) {
        log(&format!("event flags={flags}"));
        with(|state| {
            let id = state.id();
            state.events.insert(id, (0, HashSet::new()));
            state.made_in.insert(id, CONTEXT.get());
            event.set(id);
        });
        Ok(())
    }
    fn cuEventDestroy_v2(event: Pointer) {
        with(|state| {
            let event = event as usize;
            let version = state.events[&event].0;
            state.pool.forget(event, version);
        });
        Ok(())
    }
    fn cuStreamWriteValue32_v2(stream: Pointer, target: u64, value: u32, flags: u32) {
        assert_eq!(flags, 0, "after a barrier");
        if with(|state| state.takes_numbers(target)) { fill(target, &value.to_ne_bytes(), 1, stream) } else { Err(1) }
    }
    fn cuStreamWriteValue64_v2(stream: Pointer, target: u64, value: u64, flags: u32) {
        assert_eq!(flags, 0, "after a barrier");
        fill(target, &value.to_ne_bytes(), 1, stream)
    }
    fn cuStreamWaitValue32_v2(_stream: Pointer, _source: u64, value: u32, flags: u32) {
        log(&format!("waits for {value} of 32 bits, kind {flags}"));
        if flags == 3 { Err(801) } else { Ok(()) }
    }
    fn cuStreamWaitValue64_v2(_stream: Pointer, _source: u64, value: u64, flags: u32) {
        log(&format!("waits for {value} of 64 bits, kind {flags}"));
        Ok(())
    }
}

call! { own:
    fn cuStreamSynchronize(stream: Pointer) {
        check_default(stream);
        assert!(!with(|state| state.captures.contains_key(&(stream as usize))), "waiting ends a capture");
        drain(real(stream) as usize);
        Ok(())
    }
    fn cuStreamQuery(stream: Pointer) {
        // Each query lets one operation run; callbacks are called by others.
        check_default(stream);
        let stream = real(stream) as usize;
        let busy = with(|state| {
            let next = state.streams.get(&stream).and_then(VecDeque::front);
            let is_call = matches!(next, Some(Work::Call { .. }));
            is_call || !matches!(state.step(stream), Step::Empty)
        });
        if busy { Err(600) } else { Ok(()) }
    }
    fn cuStreamWaitEvent(stream: Pointer, event: Pointer, _flags: u32) {
        check_default(stream);
        with(|state| {
            // As the real driver does at times: see benches/cuda/lost_waits.cu.
            if state.launching.contains(&(real(stream) as usize)) {
                return;
            }
            let version = state.events[&(event as usize)].0;
            state.push(stream, Work::Wait { event: event as usize, version });
        });
        Ok(())
    }
    fn cuEventRecord(event: Pointer, stream: Pointer) {
        check_default(stream);
        with(|state| {
            let record = state.events.get_mut(&(event as usize)).unwrap();
            record.0 += 1;
            let version = record.0;
            state.push(stream, Work::Record { event: event as usize, version });
        });
        Ok(())
    }
    fn cuEventQuery(event: Pointer) {
        let complete = with(|state| {
            let (recorded, happened) = &state.events[&(event as usize)];
            *recorded == 0 || happened.contains(recorded)
        });
        if complete { Ok(()) } else { Err(600) }
    }
    fn cuEventSynchronize(event: Pointer) {
        let version = with(|state| state.events[&(event as usize)].0);
        wait(event as usize, version);
        Ok(())
    }
    fn cuEventElapsedTime(milliseconds: Out<f32>, _start: Pointer, _end: Pointer) {
        milliseconds.set(1.5);
        Ok(())
    }
    fn cuLaunchKernel(function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, _shared: u32, stream: Pointer, params: *mut Pointer, _extra: Pointer) {
        check_default(stream);
        // SAFETY: the caller passes the parameters of `function`.
        let work = unsafe { launch(function, [gx, gy, gz, bx, by, bz], params) };
        with(|state| state.push(stream, work));
        Ok(())
    }
}
