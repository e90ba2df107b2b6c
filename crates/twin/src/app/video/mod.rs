//! The frames of a video: each is a unit with a deadline, sent at its time in several datagrams or in a stream.

mod log;
mod receive;
mod send;
mod source;

pub(crate) use log::FrameLog;
pub(crate) use receive::{FrameAssembler, FrameStreamSink};
pub(crate) use send::{Carriage, VideoSender};
pub(crate) use source::FrameSource;
