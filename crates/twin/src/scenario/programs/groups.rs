//! Programs that send to a group, and join it, by sockets of their own.

use super::{Load, Program};
use crate::scenario::model::NodeId;
use hopcast_core::Instant;
use hopcast_stack::group::Group;

impl Program {
    /// The reason why it cannot send to the nodes `to` of a group, if it cannot: of the programs only iperf2 and those
    /// that send files to groups join any.
    pub(crate) fn refuses_group(&self, group: Option<&Group>, to: &[NodeId]) -> Option<String> {
        let name = self.name();
        let (parallel, reverse) = match self {
            Self::Iperf2(Load { parallel, reverse, .. }) => (*parallel, *reverse),
            _ => (1, false),
        };
        let (Self::Iperf2(_) | Self::GroupFile(_), Some(group)) = (self, group) else {
            return Some(format!(
                "`{name}` has one receiver; several may have `cbr`, `bulk`, `file`, `video`, and by `ip-multicast` `iperf2`, `libnorm`, `openpgm`, `jgroups`, `uftp`, `udpcast`"
            ));
        };
        // Its sockets may not broadcast (no SO_BROADCAST in 2.1.8), and machines alone make copies.
        if !group.delivery.settings().is_routed() {
            let delivery = group.delivery.row().name;
            return Some(format!(
                "`{name}` sends to several receivers by `ip-multicast` alone, not by `{delivery}`"
            ));
        }
        if matches!(self, Self::GroupFile(_)) && group.delivery.settings().is_of_one_source() {
            return Some(format!("`{name}` joins groups of any source, not of `one-source`"));
        }
        if reverse {
            return Some(format!("`{name}` with `reverse` has one receiver: a group sends nothing back"));
        }
        // A server takes one sender of a group at a time, and another connection for another sender.
        if parallel > 1 {
            return Some(format!(
                "`{name}` to a group has one connection, and `parallel` asks for {parallel}"
            ));
        }
        let stays = |&node: &NodeId| {
            let member = group.member(node);
            member.is_some_and(|member| member.spans == [(Instant::ZERO, None)])
        };
        (!to.iter().all(stays)).then(|| {
            let group = &group.name;
            format!(
                "`{name}` joins when it starts, so members of `{group}` can neither join nor leave by events"
            )
        })
    }
}
