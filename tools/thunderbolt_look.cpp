#include "thunderbolt_look.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/folder.h"

namespace ringbolt::tools {
namespace {

namespace fs = std::filesystem;

/// Names in a folder, in order, without those that a shell's line can't hold; none if it is not there.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  (void)base::each_name_in(folder.c_str(), [&](std::string_view name) {
    if (is_plain_path(name)) {
      names.emplace_back(name);
    }
  });
  std::ranges::sort(names);
  return names;
}

/// The first line of a file of sysfs; "" if it can't be read.
std::string line_of(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line.substr(0, line.find_last_not_of(" \t\r") + 1);
}

int32_t number_in(const std::string& path) {
  const std::string line = line_of(path);
  int32_t number = 0;
  std::from_chars(line.data(), line.data() + line.size(), number);
  return number;
}

bool has_line(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line == wanted) {
      return true;
    }
  }
  return false;
}

bool is_configfs_mounted(const std::string& mounts) {
  std::ifstream file(mounts);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what, where, type;
    if (words >> what >> where >> type && type == "configfs") {
      return true;
    }
  }
  return false;
}

/// The first process that has the file open, as far as this user may see.
std::string holder_of(const struct stat& wanted) {
  for (const std::string& pid : names_in("/proc")) {
    if (pid.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    const std::string folder = "/proc/" + pid + "/fd/";
    for (const std::string& descriptor : names_in(folder)) {
      struct stat found {};
      if (::stat((folder + descriptor).c_str(), &found) == 0 && found.st_dev == wanted.st_dev &&
          found.st_ino == wanted.st_ino) {
        return fmt::format("{} (pid {})", line_of("/proc/" + pid + "/comm"), pid);
      }
    }
  }
  return "";
}

/// One machine, below one root.
class Look {
 public:
  explicit Look(const std::string& root) : root_(root) {
    look_.kernel = line_of(root + "/proc/sys/kernel/osrelease");
    look_.devices = root + "/sys/bus/thunderbolt/devices";
    look_.configfs = root + "/sys/kernel/config/thunderbolt/stream";
    look_.has_bus = fs::is_directory(look_.devices);
    look_.has_configfs = is_configfs_mounted(root + "/proc/mounts");
    look_.has_driver = fs::is_directory(look_.configfs);
  }

  cluster::ThunderboltLook run() {
    for (const std::string& name : names_in(look_.devices)) {
      const std::string folder = look_.devices + "/" + name;
      // Routers are named <domain>-<route>; 0 is the machine's own.
      if (name.ends_with("-0") && !line_of(folder + "/unique_id").empty()) {
        look_.own_ids.push_back(line_of(folder + "/unique_id"));
      } else if (has_line(folder + "/uevent", "DEVTYPE=thunderbolt_xdomain")) {
        add_peer(name);
      }
    }
    for (const std::string& group : names_in(look_.configfs)) {
      add_group(group);
    }
    for (const std::string& name : names_in(root_ + "/dev")) {
      if (name.starts_with("tbstream") && !known_.contains(root_ + "/dev/" + name)) {
        look_.strays.push_back(root_ + "/dev/" + name);
      }
    }
    return std::move(look_);
  }

 private:
  void add_peer(const std::string& xdomain) {
    const std::string folder = look_.devices + "/" + xdomain;
    cluster::ThunderboltPeer peer{xdomain};
    peer.own_id = line_of(look_.devices + "/" + xdomain.substr(0, xdomain.find('-')) + "-0/unique_id");
    peer.unique_id = line_of(folder + "/unique_id");
    peer.device_name = line_of(folder + "/device_name");
    for (const std::string& name : names_in(look_.devices)) {
      if (name.starts_with(xdomain + ".") && line_of(look_.devices + "/" + name + "/key") == "stream") {
        peer.service = name;
      }
    }
    look_.peers.push_back(std::move(peer));
  }

  /// A folder <xdomain>.<service>, which may be there before anybody is.
  void add_group(const std::string& group) {
    const std::string xdomain = group.substr(0, group.find('.'));
    auto peer = std::ranges::find(look_.peers, xdomain, &cluster::ThunderboltPeer::xdomain);
    if (peer == look_.peers.end()) {
      peer = look_.peers.insert(peer, cluster::ThunderboltPeer{xdomain});
    }
    peer->groups.push_back(group);
    for (const std::string& name : names_in(look_.configfs + "/" + group)) {
      const std::string folder = fmt::format("{}/{}/{}", look_.configfs, group, name);
      if (!line_of(folder + "/index").empty()) {
        peer->streams.push_back(stream_in(folder, name));
      }
    }
  }

  cluster::ThunderboltStream stream_in(const std::string& folder, const std::string& name) {
    cluster::ThunderboltStream stream{name};
    stream.index = static_cast<uint32_t>(std::max(0, number_in(folder + "/index")));
    stream.in_hopid = number_in(folder + "/in_hopid");
    stream.out_hopid = number_in(folder + "/out_hopid");
    const std::string device = fmt::format("{}/dev/tbstream{}", root_, stream.index);
    struct stat status {};
    if (::stat(device.c_str(), &status) == 0) {
      known_.insert(device);
      stream.device = device;
      stream.may_open = ::faccessat(AT_FDCWD, device.c_str(), R_OK | W_OK, AT_EACCESS) == 0;
      stream.holder = holder_of(status);
    }
    return stream;
  }

  std::string root_;
  cluster::ThunderboltLook look_;
  std::set<std::string> known_;  // device files that ConfigFS names
};

using Json = nlohmann::ordered_json;

constexpr size_t kMostPathBytes = 255;
constexpr size_t kMostNameBytes = 64;

/// What goes into commands of a shell.
std::string path_of(const Json& json) {
  const std::string text = json.get<std::string>();
  if (!is_plain_path(text)) {
    throw std::invalid_argument("a path");
  }
  return text;
}

/// What a peer calls itself may hold anything.
std::string plain(const std::string& text) {
  std::string found;
  std::ranges::copy_if(text, std::back_inserter(found), [](char c) { return c >= ' ' && c <= '~'; });
  return found.substr(0, kMostNameBytes);
}

Json stream_to_json(const cluster::ThunderboltStream& stream) {
  return {{"name", stream.name},         {"device", stream.device},       {"index", stream.index},
          {"in_hopid", stream.in_hopid}, {"out_hopid", stream.out_hopid}, {"may_open", stream.may_open},
          {"holder", stream.holder}};
}

cluster::ThunderboltStream stream_from_json(const Json& json) {
  return {path_of(json.at("name")),
          path_of(json.at("device")),
          json.at("index").get<uint32_t>(),
          json.at("in_hopid").get<int32_t>(),
          json.at("out_hopid").get<int32_t>(),
          json.at("may_open").get<bool>(),
          plain(json.at("holder").get<std::string>())};
}

Json peer_to_json(const cluster::ThunderboltPeer& peer) {
  Json json{{"xdomain", peer.xdomain},         {"own_id", peer.own_id},   {"unique_id", peer.unique_id},
            {"device_name", peer.device_name}, {"service", peer.service}, {"groups", peer.groups},
            {"streams", Json::array()}};
  for (const cluster::ThunderboltStream& stream : peer.streams) {
    json["streams"].push_back(stream_to_json(stream));
  }
  return json;
}

cluster::ThunderboltPeer peer_from_json(const Json& json) {
  cluster::ThunderboltPeer peer{path_of(json.at("xdomain"))};
  peer.own_id = path_of(json.at("own_id"));
  peer.unique_id = path_of(json.at("unique_id"));
  peer.device_name = plain(json.at("device_name").get<std::string>());
  peer.service = path_of(json.at("service"));
  for (const Json& group : json.at("groups")) {
    peer.groups.push_back(path_of(group));
  }
  for (const Json& stream : json.at("streams")) {
    peer.streams.push_back(stream_from_json(stream));
  }
  return peer;
}

}  // namespace

cluster::ThunderboltLook look_at_thunderbolt(const std::string& root) { return Look(root).run(); }

std::string thunderbolt_root() {
  const char* root = std::getenv("RINGBOLT_THUNDERBOLT_ROOT");
  return root == nullptr ? "" : root;
}

bool is_plain_path(std::string_view text) {
  return text.size() <= kMostPathBytes && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("._-/").find(c) != std::string_view::npos;
         });
}

Json thunderbolt_to_json(const cluster::ThunderboltLook& look) {
  Json json{{"kernel", look.kernel},
            {"devices", look.devices},
            {"configfs", look.configfs},
            {"has_bus", look.has_bus},
            {"has_configfs", look.has_configfs},
            {"has_driver", look.has_driver},
            {"own_ids", look.own_ids},
            {"peers", Json::array()},
            {"strays", look.strays}};
  for (const cluster::ThunderboltPeer& peer : look.peers) {
    json["peers"].push_back(peer_to_json(peer));
  }
  return json;
}

cluster::ThunderboltLook thunderbolt_from_json(const Json& json) {
  cluster::ThunderboltLook look;
  look.kernel = plain(json.at("kernel").get<std::string>());
  look.devices = path_of(json.at("devices"));
  look.configfs = path_of(json.at("configfs"));
  look.has_bus = json.at("has_bus").get<bool>();
  look.has_configfs = json.at("has_configfs").get<bool>();
  look.has_driver = json.at("has_driver").get<bool>();
  for (const Json& id : json.at("own_ids")) {
    look.own_ids.push_back(path_of(id));
  }
  for (const Json& peer : json.at("peers")) {
    look.peers.push_back(peer_from_json(peer));
  }
  for (const Json& stray : json.at("strays")) {
    look.strays.push_back(path_of(stray));
  }
  return look;
}

}  // namespace ringbolt::tools
