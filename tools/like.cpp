#include "like.h"

#include <fmt/format.h>

#include <array>

#include "failure.h"
#include "profile/catalogue.h"

namespace ringbolt::tools {

std::string port_name(const std::string& profile, size_t index) {
  if (profile == "usb4-linux") {
    return fmt::format("usb4_rdma{}", index);
  }
  constexpr std::array<const char*, 4> kSpark{"rocep1s0f0", "rocep1s0f1", "roceP2p1s0f0", "roceP2p1s0f1"};
  return profile != "spark"      ? ""
         : index < kSpark.size() ? kSpark.at(index)
                                 : fmt::format("rocep{}s0f{}", 3 + (index - kSpark.size()) / 2, index % 2);
}

profile::Profile profile_of(const std::string& text) {
  if (text.empty()) {
    return {};
  }
  auto parsed = profile::parse_profile(text);
  if (!parsed) {
    throw UsageError(fmt::format("--like {}: {}; docs/profiles.md says what they are", text, parsed.error().text()));
  }
  return std::move(*parsed);
}

void take_likeness(cluster::Cluster& model, const std::string& text, bool renames) {
  for (cluster::Node& node : model.nodes) {
    if (node.like.empty()) {
      node.like = text;
    }
    const std::string profile = profile_of(node.like).name;
    for (size_t index = 0; renames && index < node.ports.size(); ++index) {
      if (const std::string name = port_name(profile, index); !name.empty()) {
        node.ports[index].name = name;
      }
    }
  }
}

}  // namespace ringbolt::tools
