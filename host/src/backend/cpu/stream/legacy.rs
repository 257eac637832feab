//! The legacy default stream of CPU devices. Its work waits for that of all streams ordered with it, and their later work
//! waits for its own.

use std::sync::{Arc, Mutex, Weak};

use super::Queue;
use crate::error::Result;
use crate::sync::lock;

/// The relation of a stream to the legacy default stream of its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing.
    Independent,
    /// It is ordered with it.
    Ordered,
    /// It is a legacy default stream.
    Legacy,
}

struct Member {
    role: Role,
    queue: Weak<Queue>,
}

static MEMBERS: Mutex<Vec<Member>> = Mutex::new(Vec::new());

/// Lets `queue` take part.
pub(crate) fn join(queue: &Arc<Queue>, role: Role) {
    if role == Role::Independent {
        return;
    }
    let mut members = lock(&MEMBERS);
    members.retain(|member| member.queue.strong_count() > 0);
    members.push(Member { role, queue: Arc::downgrade(queue) });
}

/// Makes later work of `queue`, which has `role`, wait for what it must come after.
pub(crate) fn order(queue: &Arc<Queue>, role: Role) -> Result<()> {
    if role == Role::Independent {
        return Ok(());
    }
    let members = lock(&MEMBERS);
    for member in members.iter().filter(|member| member.role == Role::Legacy || role == Role::Legacy) {
        if let Some(earlier) = member.queue.upgrade().filter(|earlier| earlier.has_device_of(queue)) {
            queue.run_after(&earlier)?;
        }
    }
    Ok(())
}
