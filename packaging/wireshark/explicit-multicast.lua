-- Explicit multicast for Wireshark and tshark: MEADcast, Xcast and the registrations of Xcast+.
--
-- Copy it to a folder of Lua plugins ("tshark -G folders" names them), or try it with
--
--   tshark -X lua_script:explicit-multicast.lua -r capture.pcapng -V
--
-- Fields to filter by begin with meadcast., xcast. and xcast_plus.; those of a list are there once for each address, in
-- its order. The formats are drawn in crates/explicit/src/meadcast/wire, xcast/wire and xcast/router/plus.rs. Wireshark
-- itself shows the first four bytes of a routing header, and what is behind the headers (UDP, TCP, ICMPv6).

local MEADCAST_ROUTING_TYPE, MEADCAST_PORTS = 253, 0x1e
local XCAST_ROUTING_TYPE, XCAST_PORTS = 254, 0x5e
local XCAST_PLUS_PORT = 1022
local DESTINATION_OPTIONS = 60

local meadcast = Proto("meadcast", "MEADcast")
local xcast = Proto("xcast", "Xcast")
local plus = Proto("xcast_plus", "Xcast+ registration")

local kinds = { [0] = "data", [2] = "request", [3] = "response" }

-- The fields of MEADcast's header, and of each address of its list.
local m = {
    num_dst = ProtoField.uint8("meadcast.num_dst", "Number of addresses", base.DEC),
    discovery = ProtoField.bool("meadcast.discovery", "Discovery", 8, nil, 0x80),
    response = ProtoField.bool("meadcast.response", "Response", 8, nil, 0x40),
    kind = ProtoField.uint8("meadcast.kind", "Kind", base.DEC, kinds, 0xc0),
    hops = ProtoField.uint8("meadcast.hops", "Hops", base.DEC, nil, 0x3f),
    reserved = ProtoField.uint16("meadcast.reserved", "Reserved", base.HEX),
    delivery_map = ProtoField.uint32("meadcast.delivery_map", "Delivery map", base.HEX),
    router_map = ProtoField.uint32("meadcast.router_map", "Router map", base.HEX),
    entry = ProtoField.none("meadcast.entry", "Address"),
    address = ProtoField.ipv6("meadcast.address", "Address"),
    router = ProtoField.ipv6("meadcast.router", "Router"),
    receiver = ProtoField.ipv6("meadcast.receiver", "Receiver"),
    is_router = ProtoField.bool("meadcast.is_router", "Is a router"),
    deliver = ProtoField.bool("meadcast.deliver", "Receivers behind it have not been served"),
    port = ProtoField.uint16("meadcast.port", "Port", base.DEC),
}
meadcast.fields = m

-- The fields of Xcast.
local x = {
    version = ProtoField.uint16("xcast.version", "Version", base.DEC, nil, 0xf000),
    anonymous = ProtoField.bool("xcast.anonymous", "Destinations that are not marked are overwritten", 16, nil, 0x0800),
    stays = ProtoField.bool("xcast.stays", "Must not become plain packets", 16, nil, 0x0400),
    dscps = ProtoField.bool("xcast.dscps", "Has a list of DSCPs", 16, nil, 0x0200),
    reserved = ProtoField.uint16("xcast.reserved", "Reserved", base.DEC, nil, 0x0180),
    num_dst = ProtoField.uint16("xcast.num_dst", "Number of destinations", base.DEC, nil, 0x007f),
    checksum = ProtoField.uint16("xcast.checksum", "Checksum", base.HEX),
    checksum_ok = ProtoField.bool("xcast.checksum_ok", "Checksum is right"),
    channel = ProtoField.ipv6("xcast.channel", "Channel identifier"),
    bitmap = ProtoField.bytes("xcast.bitmap", "Bitmap"),
    entry = ProtoField.none("xcast.entry", "Destination"),
    destination = ProtoField.ipv6("xcast.destination", "Destination"),
    marked = ProtoField.bool("xcast.marked", "Is behind the next hop"),
    port = ProtoField.uint16("xcast.port", "Port", base.DEC),
}
xcast.fields = x

-- The fields of a registration.
local r = {
    version = ProtoField.uint8("xcast_plus.version", "Version", base.DEC),
    reserved = ProtoField.uint8("xcast_plus.reserved", "Reserved", base.HEX),
    hold = ProtoField.uint16("xcast_plus.hold", "Hold time (s)", base.DEC),
    reserved2 = ProtoField.uint16("xcast_plus.reserved2", "Reserved", base.HEX),
    group = ProtoField.ipv6("xcast_plus.group", "Group"),
    router = ProtoField.ipv6("xcast_plus.router", "Designated router"),
}
plus.fields = r

local malformed, error = expert.group.MALFORMED, expert.severity.ERROR
local not_meadcast = ProtoExpert.new("meadcast.malformed", "Not a header of MEADcast", malformed, error)
local not_xcast = ProtoExpert.new("xcast.malformed", "Not a header of Xcast", malformed, error)
local wrong_checksum = ProtoExpert.new("xcast.checksum_bad", "Wrong checksum", expert.group.CHECKSUM, error)
meadcast.experts = { not_meadcast }
xcast.experts = { not_xcast, wrong_checksum }

local next_header = Field.new("ipv6.routing.nxt")

-- The packet of the routing header that is being read, and the place of its first byte, from which Wireshark has read
-- four already; nothing if the field is not there.
local function routing_header()
    local found = { next_header() }
    local last = found[#found]
    if last == nil or last.source == nil then return nil end
    return last.source, last.offset
end

-- Whether the bit for a place, counted from 0 on the left, is in a range of bytes.
local function has_bit(range, place)
    return range:bitfield(place, 1) == 1
end

-- The ranges of a list of `count` ports behind a routing header of `len` bytes; empty if there is none.
local function ports(packet, at, len, option, count)
    local start = at + len
    local list = {}
    if packet == nil or packet(at, 1):uint() ~= DESTINATION_OPTIONS or packet:len() < start + 4 + 2 * count then
        return list
    end
    if packet(start + 2, 1):uint() == option and packet(start + 3, 1):uint() == 2 * count then
        for number = 1, count do
            list[number] = packet(start + 2 + 2 * number, 2)
        end
    end
    return list
end

-- The Internet's checksum over a range of an even length is right.
local function is_checksum_right(range)
    local sum = 0
    for at = 0, range:len() - 2, 2 do
        sum = sum + range(at, 2):uint()
    end
    while sum > 0xffff do
        sum = math.floor(sum / 0x10000) + sum % 0x10000
    end
    return sum == 0xffff
end

function meadcast.dissector(tvb, pinfo, tree)
    local count = tvb:len() > 0 and tvb(0, 1):uint() or 0
    local root = tree:add(meadcast, tvb())
    if count < 1 or count > 32 or tvb:len() ~= 12 + 16 * count then
        root:add_proto_expert_info(not_meadcast)
        return tvb:len()
    end
    local kind = kinds[tvb(1, 1):bitfield(0, 2)] or "unknown"
    local hops = tvb(1, 1):bitfield(2, 6)
    root:append_text((", %s, %d hops, %d addresses"):format(kind, hops, count))
    root:add(m.num_dst, tvb(0, 1))
    root:add(m.discovery, tvb(1, 1))
    root:add(m.response, tvb(1, 1))
    root:add(m.kind, tvb(1, 1))
    root:add(m.hops, tvb(1, 1))
    root:add(m.reserved, tvb(2, 2))
    local delivery, routers = tvb(4, 4), tvb(8, 4)
    root:add(m.delivery_map, delivery)
    root:add(m.router_map, routers)
    local receivers = 0
    for place = 0, count - 1 do
        if not has_bit(routers, place) then receivers = receivers + 1 end
    end
    local packet, at = routing_header()
    local listed = ports(packet, at, 4 + tvb:len(), MEADCAST_PORTS, receivers)
    local receiver = 0
    for place = 0, count - 1 do
        local address = tvb(12 + 16 * place, 16)
        local is_router, deliver = has_bit(routers, place), has_bit(delivery, place)
        local entry = root:add(m.entry, address)
        entry:set_text(("%s %s"):format(is_router and "Router" or "Receiver", tostring(address:ipv6())))
        entry:add(m.address, address)
        entry:add(is_router and m.router or m.receiver, address)
        entry:add(m.is_router, routers(math.floor(place / 8), 1), is_router)
        entry:add(m.deliver, delivery(math.floor(place / 8), 1), deliver)
        if is_router and deliver then entry:append_text(", to be delivered") end
        if not is_router then
            receiver = receiver + 1
            if listed[receiver] then
                entry:add(m.port, listed[receiver])
                entry:append_text((", port %d"):format(listed[receiver]:uint()))
            end
        end
    end
    for place = count, 31 do
        if has_bit(delivery, place) or has_bit(routers, place) then
            root:add_proto_expert_info(not_meadcast, "A map marks more than the list has")
            break
        end
    end
    return tvb:len()
end

function xcast.dissector(tvb, pinfo, tree)
    local count = tvb:len() > 1 and tvb(0, 2):bitfield(9, 7) or 0
    local root = tree:add(xcast, tvb())
    local map_len = 8 * math.ceil(count / 64)
    if count < 1 or tvb:len() ~= 20 + map_len + 16 * count then
        root:add_proto_expert_info(not_xcast)
        return tvb:len()
    end
    root:append_text((", %d destinations"):format(count))
    for _, field in ipairs({ x.version, x.anonymous, x.stays, x.dscps, x.reserved, x.num_dst }) do
        root:add(field, tvb(0, 2))
    end
    local checksum = root:add(x.checksum, tvb(2, 2))
    local packet, at = routing_header()
    if packet ~= nil and packet:len() >= at + 4 + tvb:len() then
        local is_right = is_checksum_right(packet(at, 4 + tvb:len()))
        checksum:add(x.checksum_ok, tvb(2, 2), is_right):set_generated()
        if not is_right then checksum:add_proto_expert_info(wrong_checksum) end
    end
    root:add(x.channel, tvb(4, 16))
    local bitmap = tvb(20, map_len)
    root:add(x.bitmap, bitmap)
    local listed = ports(packet, at, 4 + tvb:len(), XCAST_PORTS, count)
    for place = 0, count - 1 do
        local address = tvb(20 + map_len + 16 * place, 16)
        local is_marked = has_bit(bitmap, place)
        local entry = root:add(x.entry, address)
        entry:set_text(("Destination %s"):format(tostring(address:ipv6())))
        entry:add(x.destination, address)
        entry:add(x.marked, bitmap(math.floor(place / 8), 1), is_marked)
        if is_marked then entry:append_text(", behind the next hop") end
        if listed[place + 1] then
            entry:add(x.port, listed[place + 1])
            entry:append_text((", port %d"):format(listed[place + 1]:uint()))
        end
    end
    for place = count, 8 * map_len - 1 do
        if has_bit(bitmap, place) then
            root:add_proto_expert_info(not_xcast, "The bitmap marks more than the list has")
            break
        end
    end
    return tvb:len()
end

function plus.dissector(tvb, pinfo, tree)
    if tvb:len() ~= 40 or tvb(0, 2):string() ~= "X+" then return 0 end
    pinfo.cols.protocol = "Xcast+"
    local root = tree:add(plus, tvb())
    root:add(r.version, tvb(2, 1))
    root:add(r.reserved, tvb(3, 1))
    root:add(r.hold, tvb(4, 2))
    root:add(r.reserved2, tvb(6, 2))
    root:add(r.group, tvb(8, 16))
    root:add(r.router, tvb(24, 16))
    return tvb:len()
end

local routing = DissectorTable.get("ipv6.routing.type")
routing:add(MEADCAST_ROUTING_TYPE, meadcast)
routing:add(XCAST_ROUTING_TYPE, xcast)
DissectorTable.get("udp.port"):add(XCAST_PLUS_PORT, plus)
