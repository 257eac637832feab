//! The description of a device call for observers.

use super::trace::{LaunchShape, SpanKind};
use crate::backend::LaunchConfig;
use crate::kernel::Kernel;

/// The kind of work of a call.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    Kernel { kernel: &'static Kernel, shape: LaunchConfig },
    Upload { bytes: usize },
    Download { bytes: usize },
    Copy { bytes: usize },
    Fill { bytes: usize },
    Prefetch { bytes: usize },
    Graph { nodes: usize },
    HostFn,
    Synchronize,
}

impl Work {
    pub(super) fn kind(self) -> SpanKind {
        match self {
            Work::Kernel { .. } => SpanKind::Kernel,
            Work::Upload { .. } => SpanKind::Upload,
            Work::Download { .. } => SpanKind::Download,
            Work::Copy { .. } => SpanKind::Copy,
            Work::Fill { .. } => SpanKind::Fill,
            Work::Prefetch { .. } => SpanKind::Prefetch,
            Work::Graph { .. } => SpanKind::Graph,
            Work::HostFn => SpanKind::HostFn,
            Work::Synchronize => SpanKind::Synchronize,
        }
    }

    /// The kernel's name, else that of the kind.
    pub(super) fn name(self) -> &'static str {
        match self {
            Work::Kernel { kernel, .. } => kernel.name(),
            other => other.kind().name(),
        }
    }

    pub(super) fn bytes(self) -> Option<usize> {
        match self {
            Work::Upload { bytes }
            | Work::Download { bytes }
            | Work::Copy { bytes }
            | Work::Fill { bytes }
            | Work::Prefetch { bytes } => Some(bytes),
            Work::Kernel { .. } | Work::Graph { .. } | Work::HostFn | Work::Synchronize => None,
        }
    }

    pub(super) fn nodes(self) -> Option<usize> {
        if let Work::Graph { nodes } = self { Some(nodes) } else { None }
    }

    pub(super) fn launch(self) -> Option<LaunchShape> {
        let Work::Kernel { shape, .. } = self else { return None };
        Some(LaunchShape { grid: shape.grid, block: shape.block, shared_bytes: shape.shared_bytes })
    }

    /// A span of the crate `tracing` around the call.
    #[cfg(feature = "tracing")]
    pub(super) fn span(self) -> tracing::Span {
        use tracing::debug_span;
        match self {
            Work::Kernel { kernel, shape } => debug_span!(
                target: "ferrogrid",
                "launch",
                kernel = kernel.name(),
                grid = ?shape.grid,
                block = ?shape.block,
                shared_bytes = shape.shared_bytes,
            ),
            Work::Upload { bytes } => debug_span!(target: "ferrogrid", "upload", bytes),
            Work::Download { bytes } => debug_span!(target: "ferrogrid", "download", bytes),
            Work::Copy { bytes } => debug_span!(target: "ferrogrid", "copy", bytes),
            Work::Fill { bytes } => debug_span!(target: "ferrogrid", "fill", bytes),
            Work::Prefetch { bytes } => debug_span!(target: "ferrogrid", "prefetch", bytes),
            Work::Graph { nodes } => debug_span!(target: "ferrogrid", "graph", nodes),
            Work::HostFn => debug_span!(target: "ferrogrid", "host_fn"),
            Work::Synchronize => debug_span!(target: "ferrogrid", "synchronize"),
        }
    }
}
