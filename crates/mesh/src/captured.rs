//! Packets that batman-adv 2024.2 of Linux 6.12 has sent, in hexadecimal: nodes 02:00:00:00:00:02 and
//! 32:67:ea:97:7b:37, with VLAN 7 on each, beside 02:00:00:00:00:a1, which is a [`Mesh`](crate::Mesh).

/// A message of the first node's own, with its table's changes, the distributed ARP table's flag and that of groups.
pub(crate) const OGM: &str = "000f3200d2b4a7b202000000000202000000000200ff00680401005801020003d473e7ac800700002e2ae2a880000000 \
        de898ba10000000000000000060000000002800000000000060000000002800700000000333300000001000000000000 \
        3333ff00000200000000000001005e0000010000060200043800000002010000";

/// A message of the mesh's own node that the first node sends back, with the changes of its table.
pub(crate) const ECHO: &str = "000f3104c801a6b10200000000a10200000000a10091002404010020010200023959a111000000006568a1fe80070000 \
        000000000600000000a18007";

/// The whole table of the second node, which was asked for.
pub(crate) const TABLE: &str = "440f32000200000000a13267ea977b37006800000401006414020003261864af80070000dc4161ab80000000de898ba1 \
        00000000000000000600000000038000000000000600000000030000000000003333ff00000300000000000001005e00 \
        00010000000000000600000000038007000000003333000000010000";

/// An echo request by the second node.
pub(crate) const ECHO_REQUEST: &str = "430f31080200000000a13267ea977b37d4000001";

/// The bytes of a packet.
pub(crate) fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hexadecimal.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
