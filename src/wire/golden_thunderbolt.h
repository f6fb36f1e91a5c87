#pragma once

/// Golden bytes of the native Thunderbolt verbs, as thunderbolt-ibverbs 0.3.4 sends them, and of the stream link.
namespace ringbolt::wire::golden {

// op HELLO, capabilities 7, rail 2, route 301, hops 1, path 9, rings 1024, path flags 1, sequence 11223344, XDomain 2
inline constexpr const char* kThunderboltHello =
    "00000000 01030000 13000010 7c2c8f1e5b4d4a019f3a2b8e6d4c1a07 01000000"
    "54425631 0100 0100 5800 0000 44332211 07000000 02000000 0103000000000000"
    "01000000 01000000 09000000 00040000 00040000 01000000";

// Headers of data frames; their payload goes behind them.
inline constexpr const char* kThunderboltSend =
    "54564431 0100 3000 01 03 0000 01090000 02090000 56341200 d00f0000 a01f0000 0000000000000000 00000000 d00f0000";
inline constexpr const char* kThunderboltWriteImmediate =
    "54564431 0100 3000 04 01 0000 01090000 02090000 07000000 40000000 efbeadde 443322 11007f0000 a5a50000 00000000";
inline constexpr const char* kThunderboltNotReady =
    "54564431 0100 3000 02 00 0000 02090000 01090000 56341200 00000000 01000000 0000000000000000 00000000 00000000";
inline constexpr const char* kThunderboltPathCredit =
    "54564431 0100 3000 09 00 0000 00000000 00000000 00000000 00000000 20000000 0000000000000000 00000000 00000000";

// DATA, last, epoch 11223344, sequence 5, acknowledges 3, credit 64, queue pair 901, payload "ring"
inline constexpr const char* kStreamData =
    "52425331 04 01 2800 44332211 05000000 04000000 03000000 40000000 01090000 64059d18 19559caf 72696e67";

}  // namespace ringbolt::wire::golden
