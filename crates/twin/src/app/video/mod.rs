//! The frames of a video: each is a unit, sent at its time, cut into datagrams or written into a stream, and worth
//! something until its deadline.

mod log;
mod receive;
mod send;
mod source;

pub(crate) use log::FrameLog;
pub(crate) use receive::{FrameAssembler, FrameStreamSink};
pub(crate) use send::{Carriage, VideoSender};
pub(crate) use source::FrameSource;
