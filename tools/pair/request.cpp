#include "pair/request.h"

namespace ringbolt::tools::pair {

void refuse_two_meetings(const PairOptions& options) {
  if (!options.end.empty()) {
    return;  // its command line is that of who started it, and more
  }
  if (!options.nodes.empty() && !options.host.empty()) {
    throw UsageError("HOST and --nodes both say where the other end is: give one of them");
  }
  if (!options.nodes.empty() && !options.device.empty()) {
    throw UsageError("--nodes takes the devices of the cable between them: leave out -d");
  }
  if (options.nodes.empty() && !options.cluster.empty()) {
    throw UsageError("--cluster says where to look for --nodes: give --nodes A,B too, or leave it out");
  }
}

PortChoice port_choice_of(const PairOptions& options) {
  PortChoice choice;
  choice.mtu_bytes = options.mtu_bytes;
  choice.timeout_code = static_cast<uint8_t>(options.timeout_code);
  choice.retry_count = static_cast<uint8_t>(options.retry_count);
  choice.port = static_cast<uint8_t>(options.device_port);
  choice.gid_index = options.gid_index.value_or(-1);
  return choice;
}

}  // namespace ringbolt::tools::pair
