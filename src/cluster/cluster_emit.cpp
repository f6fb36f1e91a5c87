#include "cluster/cluster_file.h"

#include "base/json_reader.h"

namespace ringbolt::cluster {
namespace {

using base::Json;

// A bare name where there is nothing but a name: the short form that people write.
Json port_json(const Port& port) {
  if (port.netdev.empty() && port.addresses.empty() && port.stream.empty()) {
    return port.name;
  }
  Json json{{"name", port.name}};
  if (!port.netdev.empty()) {
    json["netdev"] = port.netdev;
  }
  if (!port.stream.empty()) {
    json["stream"] = port.stream;
  }
  for (const IpAddress& address : port.addresses) {
    json["addresses"].push_back(address.text_with_prefix());
  }
  return json;
}

Json node_json(const Node& node) {
  Json json{{"name", node.name}};
  if (!node.host.empty()) {
    json["host"] = node.host;
  }
  if (!node.like.empty()) {
    json["like"] = node.like;
  }
  json["ports"] = Json::array();
  for (const Port& port : node.ports) {
    json["ports"].push_back(port_json(port));
  }
  return json;
}

Json cable_json(const Cluster& cluster, const Cable& cable) {
  Json json{{"between", {end_text(cluster, cable.a), end_text(cluster, cable.b)}}, {"speed_gbps", cable.speed_gbps}};
  if (cable.id) {
    json["id"] = *cable.id;
  }
  if (cable.rate_mbps != 0) {
    json["rate_mbps"] = cable.rate_mbps;
  }
  return json;
}

}  // namespace

// Written is what parse_cluster() could not fill in by itself, and the speed of each cable.
std::string emit_cluster(const Cluster& cluster) {
  Json root;
  root["ringbolt"] = kClusterFileVersion;
  if (!cluster.name.empty()) {
    root["name"] = cluster.name;
  }
  if (cluster.kind != Kind::emulated) {
    root["kind"] = kind_text(cluster.kind);
  }
  if (cluster.mtu != 0) {
    root["mtu"] = cluster.mtu;
  }
  if (!cluster.has_management) {
    root["management"] = false;
  }
  if (!cluster.prefix.empty()) {
    root["prefix"] = cluster.prefix;
  }
  if (cluster.has_overlay) {
    root["overlay"] = true;
  }
  root["nodes"] = Json::array();
  for (const Node& node : cluster.nodes) {
    root["nodes"].push_back(node_json(node));
  }
  root["cables"] = Json::array();
  for (const Cable& cable : cluster.cables) {
    root["cables"].push_back(cable_json(cluster, cable));
  }
  return root.dump(2) + "\n";
}

}  // namespace ringbolt::cluster
