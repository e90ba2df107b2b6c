-- Explicit multicast for Wireshark and tshark: MEADcast, Xcast and the registrations of Xcast+.
--
-- Copy it to a folder of Lua plugins ("tshark -G folders" names them), or try it with
--
--   tshark -X lua_script:explicit-multicast.lua -r capture.pcapng -V
--
-- Fields to filter by begin with meadcast., xcast. and xcast_plus.; those of a list are there once for each address, in
-- its order. The formats are drawn in crates/explicit/src/meadcast/wire, xcast/wire and xcast/router/plus.rs. Wireshark
-- itself shows the first four bytes of a routing header, and what is behind the headers (UDP, TCP, ICMPv6).

local MEADCAST_ROUTING_TYPE, MEADCAST_PORTS, SHORT_LISTS = 253, 0x1e, 0x81
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
    hold = ProtoField.uint8("meadcast.hold", "Routers before it is copied", base.DEC),
    reserved = ProtoField.uint8("meadcast.reserved", "Reserved", base.HEX),
    nonce = ProtoField.uint64("meadcast.nonce", "Nonce", base.HEX),
    code = ProtoField.bytes("meadcast.code", "Authentication code"),
    delivery_map = ProtoField.uint32("meadcast.delivery_map", "Delivery map", base.HEX),
    router_map = ProtoField.uint32("meadcast.router_map", "Router map", base.HEX),
    entry = ProtoField.none("meadcast.entry", "Address"),
    address = ProtoField.ipv6("meadcast.address", "Address"),
    router = ProtoField.ipv6("meadcast.router", "Router"),
    receiver = ProtoField.ipv6("meadcast.receiver", "Receiver"),
    is_router = ProtoField.bool("meadcast.is_router", "Is a router"),
    deliver = ProtoField.bool("meadcast.deliver", "Receivers behind it have not been served"),
    port = ProtoField.uint16("meadcast.port", "Port", base.DEC),
    version = ProtoField.uint8("meadcast.version", "Version", base.HEX),
    sections_len = ProtoField.uint16("meadcast.sections_len", "Bytes of sections", base.DEC),
    branch = ProtoField.uint8("meadcast.branch", "Hops at which it parts from the section before", base.DEC),
    router_shared = ProtoField.uint8("meadcast.router_shared", "Bytes in common with the router before", base.DEC),
    count = ProtoField.uint8("meadcast.count", "Receivers in the run", base.DEC),
    prefix_shared = ProtoField.uint8("meadcast.prefix_shared", "Bytes in common with the address before", base.DEC),
    prefix_len = ProtoField.uint8("meadcast.prefix_len", "Bytes of the prefix", base.DEC),
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

-- Whether the bit for a place, counted from 0 on the left, is in a range of bytes; in none it is not.
local function has_bit(range, place)
    return range ~= nil and range:bitfield(place, 1) == 1
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

-- The address whose first bytes are those of `before`, of which there are `common`, and whose others are in a range.
local function completed(before, common, range)
    if common == 0 then return range:bytes() end
    local bytes = before:subset(0, common)
    bytes:append(range:bytes())
    return bytes
end

-- Shows a short list, whose addresses are compressed: what is not there as bytes is shown as generated.
local function short_list(tvb, root)
    local packet, at = routing_header()
    local len = tvb:len() >= 4 and tvb(2, 2):uint() or 0
    if packet == nil or len == 0 or 4 + len > tvb:len() then
        root:add_proto_expert_info(not_meadcast)
        return tvb:len()
    end
    root:add(m.version, tvb(0, 1))
    root:add(m.hops, tvb(1, 1))
    root:add(m.sections_len, tvb(2, 2))
    local place, last, addresses, runs_left = 4, 4 + len, 0, false
    local router, before = packet(at - 32, 16):bytes(), nil
    local function entry(bytes, range, field, name)
        local address = bytes:tvb(name)(0, 16)
        local item = root:add(m.entry, range)
        item:set_text(("%s %s"):format(name, tostring(address:ipv6())))
        item:add(m.address, address):set_generated()
        item:add(field, address):set_generated()
        item:add(m.is_router, range, field == m.router):set_generated()
        addresses = addresses + 1
        return item
    end
    while place < last do
        if place + 2 > last then break end
        if not runs_left then
            local common = tvb(place + 1, 1):bitfield(0, 4)
            if place + 2 + 16 - common > last then break end
            router = completed(router, common, tvb(place + 2, 16 - common))
            local item = entry(router, tvb(place, 18 - common), m.router, "Router")
            item:add(m.branch, tvb(place, 1))
            item:add(m.router_shared, tvb(place + 1, 1), common)
            place, before, runs_left = place + 18 - common, router, true
        else
            local count, common, prefix_len =
                tvb(place, 1):bitfield(1, 7), tvb(place + 1, 1):bitfield(0, 4), tvb(place + 1, 1):bitfield(4, 4)
            local size = 2 + prefix_len - common + count * (16 - prefix_len)
            if count == 0 or common > prefix_len or place + size > last then break end
            root:add(m.count, tvb(place, 1), count)
            root:add(m.prefix_shared, tvb(place + 1, 1), common)
            root:add(m.prefix_len, tvb(place + 1, 1), prefix_len)
            runs_left = has_bit(tvb(place, 1), 0)
            local prefix = before
            if prefix_len > common then prefix = completed(before, common, tvb(place + 2, prefix_len - common)) end
            place = place + 2 + prefix_len - common
            for _ = 1, count do
                local rest = tvb(place, 16 - prefix_len)
                before = completed(prefix, prefix_len, rest)
                entry(before, rest, m.receiver, "Receiver")
                place = place + 16 - prefix_len
            end
        end
    end
    if place ~= last or runs_left then root:add_proto_expert_info(not_meadcast) end
    root:append_text((", short list, %d hops, %d addresses"):format(tvb(1, 1):uint(), addresses))
    return tvb:len()
end

function meadcast.dissector(tvb, pinfo, tree)
    local count = tvb:len() > 0 and tvb(0, 1):uint() or 0
    local root = tree:add(meadcast, tvb())
    if count == SHORT_LISTS then return short_list(tvb, root) end
    local has_code = tvb:len() == 12 + 16 * count + 16 and tvb(1, 1):bitfield(0, 2) == 3
    if count < 1 or count > 32 or (tvb:len() ~= 12 + 16 * count and not has_code) then
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
    root:add(m.hold, tvb(2, 1))
    root:add(m.reserved, tvb(3, 1))
    local is_discovery = has_bit(tvb(1, 1), 0)
    local delivery, routers = tvb(4, 4), tvb(8, 4)
    if is_discovery then
        root:add(m.nonce, tvb(4, 8))
        if has_code then root:add(m.code, tvb(12 + 16 * count, 16)) end
        delivery, routers = nil, nil
    else
        root:add(m.delivery_map, delivery)
        root:add(m.router_map, routers)
    end
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
        local function of(map) return map ~= nil and map(math.floor(place / 8), 1) or address end
        entry:add(m.is_router, of(routers), is_router)
        entry:add(m.deliver, of(delivery), deliver)
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
