#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "cluster/thunderbolt.h"

namespace ringbolt::tools {

/// Looks at what sysfs, ConfigFS and /dev of this machine say of Thunderbolt and its streams; opens no stream. `root`
/// stands before every path; tests give a folder that plays the machine. What is not there or can't be read is left out.
cluster::ThunderboltLook look_at_thunderbolt(const std::string& root);

/// $RINGBOLT_THUNDERBOLT_ROOT, which is for tests, or "".
std::string thunderbolt_root();

/// True for what no shell takes for more than a part of a path: A-Z a-z 0-9 _ . - / and 255 bytes at most.
bool is_plain_path(std::string_view text);

/// For the answer of a host, both ways. from_json() throws what its caller takes for damage.
nlohmann::ordered_json thunderbolt_to_json(const cluster::ThunderboltLook& look);
cluster::ThunderboltLook thunderbolt_from_json(const nlohmann::ordered_json& json);

}  // namespace ringbolt::tools
