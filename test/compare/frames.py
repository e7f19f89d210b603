# SPDX-License-Identifier: BSD-3-Clause
"""Frames to send, and what is to be seen in frames that came."""
import struct

# Nobody's addresses: ports that take them are promiscuous.
STRANGER = bytes.fromhex("020000000042")
SENDER = bytes.fromhex("020000000041")
BROADCAST = b"\xff" * 6
TCP_ACK, TCP_PSH_ACK = 0x10, 0x18


def checksum(data):
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def payload(size, seed=0):
    return bytes((seed * 7 + i * 3 + (i >> 8)) & 0xff for i in range(size))


def ethernet(ether_type, body, destination=STRANGER, source=SENDER, vlan=None):
    tag = b"" if vlan is None else struct.pack(">HH", 0x8100, vlan)
    frame = destination + source + tag + struct.pack(">H", ether_type) + body
    return frame + bytes(max(0, 60 - len(frame)))


def pseudo(source, destination, protocol, length):
    if len(source) == 4:
        return source + destination + struct.pack(">BBH", 0, protocol, length)
    return source + destination + struct.pack(">IHBB", length, 0, 0, protocol)


def udp(source, destination, source_port, destination_port, data, right=True):
    head = struct.pack(">HHHH", source_port, destination_port, len(data) + 8, 0)
    value = checksum(pseudo(source, destination, 17, len(data) + 8) + head + data) or 0xffff
    if not right:
        value ^= 0x0101
    return head[:6] + struct.pack(">H", value) + data


def tcp(source, destination, source_port, destination_port, data, right=True, sequence=1000,
        flags=TCP_ACK):
    head = struct.pack(">HHIIBBHHH", source_port, destination_port, sequence, 77, 0x50, flags,
                       8192, 0, 0)
    value = checksum(pseudo(source, destination, 6, len(data) + 20) + head + data)
    if not right:
        value ^= 0x0101
    return head[:16] + struct.pack(">H", value) + head[18:] + data


def ipv4(source, destination, protocol, body, right=True, fragment=0, identifier=1):
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(body), identifier, fragment, 64, protocol,
                       0, source, destination)
    value = checksum(head) ^ (0 if right else 0x0101)
    return head[:10] + struct.pack(">H", value) + head[12:] + body


def ipv6(source, destination, protocol, body):
    return struct.pack(">IHBB16s16s", 0x60000000, len(body), protocol, 64, source, destination) + body


def address4(host):
    return bytes([10, 1, host >> 8 & 0xff, host & 0xff])


def address6(host):
    return bytes.fromhex("fd00000000000000000000000000") + struct.pack(">H", host)


def udp4(size=100, host=1, port=4791, right=True, ip_right=True, **link):
    """An IPv4 UDP frame of `size` bytes (62 and more; without a VLAN tag)."""
    a, b = address4(host), address4(9)
    data = payload(size - 42, host)
    return ethernet(0x0800, ipv4(a, b, 17, udp(a, b, 1000 + host, port, data, right), ip_right),
                    **link)


def tcp4(size=100, host=1, port=80, right=True, ip_right=True, flags=TCP_ACK, **link):
    a, b = address4(host), address4(9)
    data = payload(size - 54, host)
    return ethernet(0x0800, ipv4(a, b, 6, tcp(a, b, 1000 + host, port, data, right, flags=flags),
                                 ip_right), **link)


def udp6(size=100, host=1, port=4791, right=True, **link):
    a, b = address6(host), address6(9)
    data = payload(size - 62, host)
    return ethernet(0x86dd, ipv6(a, b, 17, udp(a, b, 1000 + host, port, data, right)), **link)


def tcp6(size=100, host=1, port=80, right=True, flags=TCP_ACK, **link):
    a, b = address6(host), address6(9)
    data = payload(size - 74, host)
    return ethernet(0x86dd, ipv6(a, b, 6, tcp(a, b, 1000 + host, port, data, right, flags=flags)),
                    **link)


def fragment4(size=100, host=1, offset=185):
    a, b = address4(host), address4(9)
    return ethernet(0x0800, ipv4(a, b, 17, payload(size - 34, host), fragment=offset))


def other(size=60, ether_type=0x88b5, seed=0, **link):
    return ethernet(ether_type, payload(size - 14, seed), **link)


def mixed(count=200, largest=1514):
    """Frames of every kind and of many sizes, no two alike."""
    makers = (udp4, tcp4, udp6, tcp6, fragment4)
    frames = []
    for i in range(count):
        size = 80 + i * (largest - 80) // max(1, count - 1)
        if i % 6 == 5:
            frames.append(other(size, seed=i))
        else:
            frames.append(makers[i % 6](size, host=i))
    return frames


def checksums_are_right(frame):
    """Of an untagged IPv4 or IPv6 frame with TCP or UDP that is no fragment."""
    if frame[12:14] == b"\x08\x00":
        head, length = frame[14:34], struct.unpack(">H", frame[16:18])[0] - 20
        if checksum(head) != 0:
            return False
        protocol, source, destination, body = head[9], head[12:16], head[16:20], frame[34:34 + length]
    else:
        head, length = frame[14:54], struct.unpack(">H", frame[18:20])[0]
        protocol, source, destination, body = head[6], head[8:24], head[24:40], frame[54:54 + length]
    return checksum(pseudo(source, destination, protocol, length) + body) == 0
