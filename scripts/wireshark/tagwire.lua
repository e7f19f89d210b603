-- SPDX-License-Identifier: BSD-3-Clause
-- Wireshark dissector for the Tagwire protocol; follows doc/protocol.md.
--   wireshark -X lua_script:scripts/wireshark/tagwire.lua
-- UDP port 18515 by default, tagwire-perf's; "Decode As" for others.
local tagwire = Proto("tagwire", "Tagwire")

local types = {
    [1] = "MESSAGES", [2] = "FIRST", [3] = "FRAGMENT", [4] = "GRANT", [5] = "ACK", [6] = "PROBE",
    [7] = "HELLO", [8] = "COOKIE", [9] = "ACCEPT", [10] = "REFUSE", [11] = "CLOSE", [12] = "RESET",
    [13] = "OPERATIONS",
}
local reasons = {
    [0] = "none", [1] = "version", [2] = "feature", [3] = "endpoint", [4] = "space", [5] = "parameters",
    [6] = "key",
}
local kinds = {
    [0] = "tagged", [1] = "untagged", [2] = "put", [3] = "get request", [4] = "get reply",
    [5] = "atomic request", [6] = "atomic reply", [7] = "connection",
}

local connection_messages = {
    [1] = "request", [2] = "accept", [3] = "reject", [4] = "shutdown", [5] = "ping",
}

local f = tagwire.fields
f.version = ProtoField.uint8("tagwire.version", "Version", base.DEC, nil, 0xf0)
f.type = ProtoField.uint8("tagwire.type", "Type", base.DEC, types, 0x0f)
f.flags = ProtoField.uint8("tagwire.flags", "Flags", base.HEX)
f.echo = ProtoField.bool("tagwire.flags.echo", "Echo", 8, nil, 0x01)
f.ack_now = ProtoField.bool("tagwire.flags.ack_now", "Ack now", 8, nil, 0x02)
f.duplicate = ProtoField.bool("tagwire.flags.duplicate", "Duplicate", 8, nil, 0x04)
f.reply = ProtoField.bool("tagwire.flags.reply", "Reply", 8, nil, 0x08)
f.connection = ProtoField.uint16("tagwire.connection", "Connection id")
f.connection_tag = ProtoField.uint32("tagwire.connection_tag", "Connection tag", base.HEX)
f.psn = ProtoField.uint32("tagwire.psn", "PSN")
f.ack = ProtoField.uint32("tagwire.ack", "Ack")
f.timestamp = ProtoField.uint32("tagwire.timestamp", "Timestamp (16 ns)")
f.credit = ProtoField.uint16("tagwire.credit", "Credit")
f.message = ProtoField.uint32("tagwire.message", "Message id")
f.length = ProtoField.uint32("tagwire.length", "Length")
f.kind = ProtoField.uint16("tagwire.kind", "Kind", base.DEC, kinds, 0x000f)
f.has_data = ProtoField.bool("tagwire.message_flags.has_data", "Has data", 16, nil, 0x0010)
f.wants_match = ProtoField.bool("tagwire.message_flags.wants_match", "Wants a match note", 16, nil, 0x0020)
f.wants_delivery = ProtoField.bool("tagwire.message_flags.wants_delivery", "Wants a delivery note", 16, nil, 0x0040)
f.tag = ProtoField.uint64("tagwire.tag", "Tag", base.HEX)
f.data = ProtoField.uint64("tagwire.data", "Remote data", base.HEX)
f.connection_message = ProtoField.uint32("tagwire.connection_message", "Connection message", base.DEC, connection_messages)
f.managed = ProtoField.uint64("tagwire.managed_connection", "Id of the connection", base.HEX)
f.offset = ProtoField.uint32("tagwire.offset", "Offset")
f.granted = ProtoField.uint32("tagwire.granted", "Granted")
f.announces = ProtoField.bool("tagwire.message_flags.announces", "Announces", 16, nil, 0x0080)
f.status = ProtoField.uint16("tagwire.grant_status", "Status (errno)")
f.final = ProtoField.bool("tagwire.grant_flags.final", "Final", 16, nil, 0x0001)
f.matched = ProtoField.bool("tagwire.grant_flags.matched", "Matched", 16, nil, 0x0002)
f.delivered = ProtoField.bool("tagwire.grant_flags.delivered", "Delivered", 16, nil, 0x0004)
f.refused = ProtoField.bool("tagwire.grant_flags.refused", "Refused", 16, nil, 0x0008)
f.range = ProtoField.bool("tagwire.grant_flags.range", "Range", 16, nil, 0x0010)
f.operation_kind = ProtoField.uint16("tagwire.operation.kind", "Kind", base.DEC, kinds, 0xe000)
f.operation_has_data = ProtoField.bool("tagwire.operation.has_data", "Has data", 16, nil, 0x1000)
f.operation_length = ProtoField.uint16("tagwire.operation.length", "Length", base.DEC, nil, 0x0fff)
f.sack = ProtoField.uint64("tagwire.sack", "Bitmap", base.HEX)
f.payload = ProtoField.bytes("tagwire.payload", "Payload")
f.cookie = ProtoField.uint64("tagwire.cookie", "Cookie", base.HEX)
f.incarnation = ProtoField.uint64("tagwire.incarnation", "Incarnation", base.HEX)
f.own_tag = ProtoField.uint32("tagwire.own_tag", "Own tag", base.HEX)
f.own_connection = ProtoField.uint16("tagwire.own_connection", "Own connection id")
f.source_endpoint = ProtoField.uint16("tagwire.source_endpoint", "Source endpoint")
f.destination_endpoint = ProtoField.uint16("tagwire.destination_endpoint", "Destination endpoint")
f.mtu = ProtoField.uint16("tagwire.mtu", "MTU")
f.first_psn = ProtoField.uint32("tagwire.first_psn", "First PSN")
f.features = ProtoField.uint32("tagwire.features", "Required features", base.HEX)
f.eager_window = ProtoField.uint32("tagwire.eager_window", "Eager window")
f.window = ProtoField.uint16("tagwire.window", "Window")
f.reason = ProtoField.uint8("tagwire.reason", "Reason", base.DEC, reasons)
f.highest = ProtoField.uint8("tagwire.highest_version", "Highest version")
f.key = ProtoField.uint64("tagwire.key", "Digest of the key", base.HEX)

-- Adds fields of the given sizes one after the other; returns the next offset.
local function add_all(tree, buffer, at, list)
    for _, entry in ipairs(list) do
        tree:add(entry[1], buffer(at, entry[2]))
        at = at + entry[2]
    end
    return at
end

local function add_rest(tree, buffer, at)
    if at < buffer:len() then
        tree:add(f.payload, buffer(at))
    end
end

-- Several fields that lie in the same two bytes.
local function add_bits(tree, buffer, at, list)
    for _, field in ipairs(list) do tree:add(field, buffer(at, 2)) end
    return at + 2
end

local function records(tree, buffer, at)
    local id = buffer(at, 4):uint()
    tree:add(f.message, buffer(at, 4))
    at = at + 4
    local count = 0
    while at + 2 <= buffer:len() do
        local tagged, has_data = buffer(at, 2):bitfield(0, 1), buffer(at, 2):bitfield(1, 1)
        local length = buffer(at, 2):bitfield(2, 14)
        local size = 2 + 8 * (tagged + has_data) + length
        if at + size > buffer:len() then break end
        local record = tree:add(buffer(at, size), string.format("Message %d, %d bytes", (id + count) % 4294967296, length))
        local inner = at + 2
        if tagged == 1 then inner = add_all(record, buffer, inner, { { f.tag, 8 } }) end
        if has_data == 1 then inner = add_all(record, buffer, inner, { { f.data, 8 } }) end
        if length > 0 then record:add(f.payload, buffer(inner, length)) end
        at = at + size
        count = count + 1
    end
    return string.format(" %d+%d", id, count)
end

local function operations(tree, buffer, at)
    local id = buffer(at, 4):uint()
    tree:add(f.message, buffer(at, 4))
    at = at + 4
    local count = 0
    while at + 18 <= buffer:len() do
        local kind, length = buffer(at, 2):bitfield(0, 3), buffer(at, 2):bitfield(4, 12)
        local size = 18 + length
        if at + size > buffer:len() then break end
        local record = tree:add(buffer(at, size), string.format("Message %d, %s, %d bytes", (id + count) % 4294967296,
            kinds[kind] or "?", length))
        local inner = add_bits(record, buffer, at, { f.operation_kind, f.operation_has_data, f.operation_length })
        inner = add_all(record, buffer, inner, { { f.tag, 8 }, { f.data, 8 } })
        if length > 0 then record:add(f.payload, buffer(inner, length)) end
        at = at + size
        count = count + 1
    end
    return string.format(" %d+%d", id, count)
end

local extensions = {
    [1] = records,
    [13] = operations,
    [2] = function(tree, buffer, at)
        local next = add_all(tree, buffer, at, { { f.message, 4 }, { f.length, 4 } })
        next = add_bits(tree, buffer, next, { f.kind, f.has_data, f.wants_match, f.wants_delivery, f.announces })
        local kind = buffer(at + 9, 1):bitfield(4, 4)
        local name = kinds[kind] or "?"
        if kind == 7 then  -- the tag's low half says which; the high one is 0
            name = name .. " " .. (connection_messages[buffer(next + 4, 4):uint()] or "?")
            next = add_all(tree, buffer, next + 4, { { f.connection_message, 4 }, { f.managed, 8 } })
        else
            next = add_all(tree, buffer, next, { { f.tag, 8 }, { f.data, 8 } })
        end
        add_rest(tree, buffer, next)
        return string.format(" %d, %s, %d bytes", buffer(at, 4):uint(), name, buffer(at + 4, 4):uint())
    end,
    [3] = function(tree, buffer, at)
        add_rest(tree, buffer, add_all(tree, buffer, at, { { f.message, 4 }, { f.offset, 4 } }))
        return string.format(" %d at %d", buffer(at, 4):uint(), buffer(at + 4, 4):uint())
    end,
    [4] = function(tree, buffer, at)
        local next = add_all(tree, buffer, at, { { f.message, 4 }, { f.granted, 4 }, { f.status, 2 } })
        add_bits(tree, buffer, next, { f.final, f.matched, f.delivered, f.refused, f.range })
        return string.format(" %d to %d", buffer(at, 4):uint(), buffer(at + 4, 4):uint())
    end,
    [5] = function(tree, buffer, at)
        while at + 8 <= buffer:len() do
            at = add_all(tree, buffer, at, { { f.sack, 8 } })
        end
    end,
}

local function handshake(tree, buffer, at)
    add_all(tree, buffer, at, {
        { f.cookie, 8 }, { f.incarnation, 8 }, { f.own_tag, 4 }, { f.own_connection, 2 },
        { f.source_endpoint, 2 }, { f.destination_endpoint, 2 }, { f.mtu, 2 }, { f.first_psn, 4 },
        { f.features, 4 }, { f.eager_window, 4 }, { f.window, 2 }, { f.reason, 1 }, { f.highest, 1 } })
    add_all(tree, buffer, at + 48, { { f.key, 8 } })
end
for type = 7, 10 do extensions[type] = handshake end

function tagwire.dissector(buffer, pinfo, root)
    if buffer:len() < 22 or buffer(0, 1):bitfield(0, 4) ~= 1 then return 0 end
    local type = buffer(0, 1):bitfield(4, 4)
    pinfo.cols.protocol = "Tagwire"
    local tree = root:add(tagwire, buffer())
    tree:add(f.version, buffer(0, 1))
    tree:add(f.type, buffer(0, 1))
    local flags = tree:add(f.flags, buffer(1, 1))
    for _, flag in ipairs({ f.echo, f.ack_now, f.duplicate, f.reply }) do flags:add(flag, buffer(1, 1)) end
    local at = add_all(tree, buffer, 2, {
        { f.connection, 2 }, { f.connection_tag, 4 }, { f.psn, 4 }, { f.ack, 4 }, { f.timestamp, 4 }, { f.credit, 2 } })
    local info = types[type] or string.format("type %d", type)
    if (type >= 1 and type <= 4) or type == 13 then info = info .. string.format(" psn %d", buffer(8, 4):uint()) end
    info = info .. string.format(" ack %d", buffer(12, 4):uint())
    local extension = extensions[type]
    if extension and buffer:len() > at then info = info .. (extension(tree, buffer, at) or "") end
    pinfo.cols.info = info
    return buffer:len()
end

DissectorTable.get("udp.port"):add(18515, tagwire)
