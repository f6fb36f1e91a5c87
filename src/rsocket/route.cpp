#include "rsocket/route.h"

#include <arpa/inet.h>

#include <cstring>

namespace ringbolt::rsocket {
namespace {

constexpr uint8_t kExactly = 2U << 6U;  ///< the selector that goes with a value
constexpr int kUnknownMtuBytes = 2048;

ibv_path_data data_of(const ibv_sa_path_rec& record) {
  ibv_path_data data{};
  data.flags = record.preference;
  ibv_path_record& path = data.path;
  path.dgid = record.dgid;
  path.sgid = record.sgid;
  path.dlid = record.dlid;
  path.slid = record.slid;
  path.flowlabel_hoplimit = htonl((ntohl(record.flow_label) << 8U) | record.hop_limit);
  path.tclass = record.traffic_class;
  path.reversible_numpath = static_cast<uint8_t>((record.reversible != 0 ? IBV_PATH_RECORD_REVERSIBLE : 0) | 1);
  path.pkey = record.pkey;
  path.qosclass_sl = htons(record.sl);
  path.mtu = record.mtu | kExactly;
  path.rate = record.rate | kExactly;
  path.packetlifetime = record.packet_life_time | kExactly;
  return data;
}

}  // namespace

std::vector<ibv_path_data> paths_of(const rdma_route& route) {
  std::vector<ibv_path_data> paths;
  for (int i = 0; i < route.num_paths; ++i) {
    paths.push_back(data_of(route.path_rec[i]));
  }
  return paths;
}

int path_mtu_bytes(const rdma_route& route) {
  // Codes of an MTU count from 1 for 256 bytes (enum ibv_mtu).
  return route.num_paths > 0 ? 128 << route.path_rec[0].mtu : kUnknownMtuBytes;
}

}  // namespace ringbolt::rsocket
