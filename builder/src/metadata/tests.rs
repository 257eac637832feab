//! Reading of metadata, from a text like cargo's.
