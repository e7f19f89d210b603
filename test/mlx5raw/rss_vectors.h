// SPDX-License-Identifier: BSD-3-Clause
// Microsoft, "Verifying the RSS Hash Calculation": all IPv4 and IPv6 cases, with the key
// that is the driver's default.
#pragma once

#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {

struct RssVector {
    FlowAddresses flow;
    uint32_t address_hash, port_hash;
};

inline const RssVector kRssVectors[] = {
    {{{66, 9, 149, 187}, {161, 142, 100, 80}, 2794, 1766}, 0x323e8fc2, 0x51ccc178},
    {{{199, 92, 111, 2}, {65, 69, 140, 83}, 14230, 4739}, 0xd718262a, 0xc626b0ea},
    {{{24, 19, 198, 95}, {12, 22, 207, 184}, 12898, 38024}, 0xd2d0a5de, 0x5c2b394a},
    {{{38, 27, 205, 30}, {209, 142, 163, 6}, 48228, 2217}, 0x82989176, 0xafc7327f},
    {{{153, 39, 163, 191}, {202, 188, 127, 2}, 44251, 1303}, 0x5d1809c5, 0x10e828a2},
    {{{0x3f, 0xfe, 0x25, 1, 2, 0, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7},
      {0x3f, 0xfe, 0x25, 1, 2, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1},
      2794,
      1766},
     0x2cc18cd5,
     0x40207d3d},
    {{{0x3f, 0xfe, 5, 1, 0, 8, 0, 0, 2, 0x60, 0x97, 0xff, 0xfe, 0x40, 0xef, 0xab},
      {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
      14230,
      4739},
     0x0f0c461c,
     0xdde51bbf},
    {{{0x3f, 0xfe, 0x19, 0, 0x45, 0x45, 0, 3, 2, 0, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf},
      {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf},
      44251,
      38024},
     0x4b61e985,
     0x02d1feef},
};

}  // namespace tagwire::mlx5raw
