#pragma once

#include <vector>

/// Packets of other implementations and of the standard's own examples, for tests: from the IP header to the ICRC.
namespace ringbolt::wire::golden {

struct Packet {
  const char* name;
  const char* hex;
};

/// The first two: captured on a ConnectX-4 Lx and on another NIC (published with scapy's tests). The others follow the
/// rules with which Linux' rdma_rxe took every packet: 10.77.0.1 to 10.77.0.2, fe80::1 to fe80::2, queue pair 0x11.
inline std::vector<Packet> roce_packets() {
  return {
      {"CNP",
       "45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff40000118000000000000000000000000000000000000"
       "000082fd002a"},
      {"UC SEND only, two bytes of pad",
       "45010040047840004011b4d5c0a80007c0a80007c00012b7002caca22460ffff000000d300cf17104630818be28935d90e9a95505401"
       "be885e50000078f353f3"},
      {"RC SEND only",
       "45000034000040004011261d0a4d00010a4d000212b712b7002000000440ffff0000001180000abc72696e67626f6c74569be5ad"},
      {"RC SEND only, IPv4 identification 1",
       "45000034000140004011261c0a4d00010a4d000212b712b7002000000440ffff0000001180000abc72696e67626f6c74ad6df6ea"},
      {"ACK", "4500003000004000401126210a4d00010a4d000212b712b7001c00001140ffff0000001100000abc1f0000012a15351f"},
      {"NAK 60", "4500003000004000401126210a4d00010a4d000212b712b7001c00001140ffff000000110000005160000007dd20d5b4"},
      {"RC WRITE only, three bytes of pad",
       "45000044000040004011260d0a4d00010a4d000212b712b7003000000a70ffff0000001180000abd0000000000001000000012340000"
       "000568656c6c6f0000003018c8dc"},
      {"UD SEND only",
       "4500003800004000401126190a4d00010a4d000212b712b7002400006440ffff00000011000000011111111100123456756421218594"
       "129b"},
      {"IPv6 RC SEND only",
       "6000000000201140fe800000000000000000000000000001fe80000000000000000000000000000212b712b7002000000440ffff0000"
       "001180000abc72696e67626f6c741fcfa750"},
  };
}

}  // namespace ringbolt::wire::golden
