//! Walks over module trees written to a temporary folder.
