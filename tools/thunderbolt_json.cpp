#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include <nlohmann/json.hpp>

#include "thunderbolt_look.h"

namespace ringbolt::tools {
namespace {

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
  return {{"name", stream.name},
          {"device", stream.device},
          {"index", stream.index},
          {"in_hopid", stream.in_hopid},
          {"out_hopid", stream.out_hopid},
          {"may_open", stream.may_open},
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

bool is_plain_path(std::string_view text) {
  return text.size() <= kMostPathBytes && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("._-/").find(c) != std::string_view::npos;
         });
}

Json thunderbolt_to_json(const cluster::ThunderboltLook& look) {
  Json json{{"kernel", look.kernel},     {"devices", look.devices},           {"configfs", look.configfs},
            {"has_bus", look.has_bus},   {"has_configfs", look.has_configfs}, {"has_driver", look.has_driver},
            {"own_ids", look.own_ids},   {"peers", Json::array()},            {"strays", look.strays}};
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
