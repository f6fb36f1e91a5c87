// Every check has a healthy and a sick recording in tests/doctor/recordings (its README.md has the format).
#include <algorithm>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doctor/check.h"
#include "doctor/redact.h"
#include "doctor/report.h"

namespace ringbolt::tools::doctor {
namespace {

const std::string kFolder = RINGBOLT_RECORDINGS;

std::string file_text(const std::string& name) {
  std::ifstream file(kFolder + "/" + name);
  EXPECT_TRUE(file.is_open()) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Recording healthy_one(const std::string& base) { return parse_recording(file_text(base + ".txt"), "x"); }

const std::vector<std::string> kBases = {"spark", "strix", "mac", "ring"};

struct Case {
  std::string check;
  std::vector<std::string> also;
  Recording healthy;
  Recording sick;
};

/// One line of a case.
void edit(Recording& recording, Reading*& now, const std::string& line) {
  const std::string rest = line.substr(1);
  if (line.starts_with("@ ")) {
    const size_t space = line.find(' ', 2);
    now = &recording.at(line.substr(2, space - 2), line.substr(space + 1));
    return;
  }
  ASSERT_NE(now, nullptr) << line;
  if (line.starts_with('~')) {
    const size_t arrow = rest.find(" => ");
    ASSERT_NE(arrow, std::string::npos) << line;
    const size_t at = now->text.find(rest.substr(0, arrow));
    ASSERT_NE(at, std::string::npos) << line;
    now->text.replace(at, arrow, rest.substr(arrow + 4));
  } else if (line.starts_with('+')) {
    now->text += rest + "\n";
  } else if (line.starts_with('-')) {
    std::string kept;
    for (const std::string_view one : lines_of(now->text)) {
      kept += one.starts_with(rest) ? "" : std::string(one) + "\n";
    }
    EXPECT_NE(kept, now->text) << line;
    now->text = kept;
  } else if (line == "*") {
    now->text.clear();
  } else if (line.starts_with('!')) {
    now->text.clear();
    now->problem = rest;
  } else {
    FAIL() << line;
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  std::istringstream text(file_text("sick.txt"));
  Reading* now = nullptr;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("## ")) {
      std::istringstream words(line.substr(3));
      std::string base;
      std::string also;
      Case& one = all.emplace_back();
      words >> one.check >> base >> also;
      for (std::string id; words >> id;) {
        one.also.push_back(id);
      }
      one.healthy = one.sick = healthy_one(base);
      now = nullptr;
    } else if (line == "--") {
      all.back().healthy = all.back().sick;
      now = nullptr;
    } else {
      edit(all.back().sick, now, line);
    }
  }
  return all;
}

Diagnosis diagnosis_of(const Recording& recording) { return diagnose(*facts_of(recording)); }

std::string text_of(const Recording& recording) {
  const auto facts = facts_of(recording);
  return report_text(*facts, diagnose(*facts));
}

Verdict::State state_of(const Diagnosis& diagnosis, const std::string& check) {
  return std::ranges::find(diagnosis.verdicts, check, [](const Verdict& one) { return std::string(one.check->id); })
      ->state;
}

TEST(Diagnosis, finds_nothing_where_all_is_well) {
  for (const std::string& base : kBases) {
    EXPECT_TRUE(diagnosis_of(healthy_one(base)).findings.empty()) << base << "\n" << text_of(healthy_one(base));
  }
}

TEST(Diagnosis, every_illness_is_named_first) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.check + "\n" + text_of(one.sick));
    EXPECT_EQ(state_of(diagnosis_of(one.healthy), one.check), Verdict::State::healthy) << text_of(one.healthy);
    const Diagnosis diagnosis = diagnosis_of(one.sick);
    ASSERT_FALSE(diagnosis.findings.empty());
    EXPECT_EQ(diagnosis.findings.front().check->id, one.check);
    for (const Finding& found : diagnosis.findings) {
      const std::string id(found.check->id);
      EXPECT_TRUE(id == one.check || std::ranges::find(one.also, id) != one.also.end()) << id;
      EXPECT_FALSE(found.evidence.empty()) << id;
      EXPECT_FALSE(found.mend.empty() && found.advice.empty()) << id;
    }
  }
}

TEST(Diagnosis, every_check_has_a_case_and_words) {
  std::set<std::string> told;
  for (const Case& one : cases()) {
    told.insert(one.check);
  }
  std::set<std::string> ids;
  for (const Check* one : all_checks()) {
    EXPECT_TRUE(ids.insert(std::string(one->id)).second) << one->id;
    EXPECT_FALSE(one->what.empty() || one->why.empty()) << one->id;
  }
  EXPECT_EQ(told, ids);
  EXPECT_GE(ids.size(), 60U);
}

TEST(Diagnosis, what_could_not_be_read_is_never_healthy) {
  for (const std::string& base : kBases) {
    Recording recording = healthy_one(base);
    for (Reading& one : recording.readings) {
      if (one.host != kNoHost && one.source != "uname") {
        one.text.clear();
        one.problem = "permission denied";
      }
    }
    const Diagnosis diagnosis = diagnosis_of(recording);
    for (const Verdict& one : diagnosis.verdicts) {
      const bool needs_nothing = one.check->reads.empty();
      EXPECT_TRUE(needs_nothing || one.state != Verdict::State::healthy) << one.check->id;
    }
    EXPECT_NE(text_of(recording).find("could not read"), std::string::npos);
  }
}

TEST(Diagnosis, nothing_that_was_read_commands_a_terminal) {
  Recording recording = healthy_one("ring");
  recording.at("n1", "environment").text +=
      "NCCL_IB_HCA=\x1b]0;x\x07\nRINGBOLT_LIKE=\xc2\x9b"
      "2J\n";
  recording.put({"n2", "ip -o address", "", "refused\x1b[2J"});
  const std::string text = text_of(recording);
  EXPECT_NE(text.find("RINGBOLT_LIKE"), std::string::npos) << text;
  EXPECT_NE(text.find("refused?[2J"), std::string::npos) << text;
  for (const char* command : {"\x1b", "\x07", "\xc2\x9b"}) {
    EXPECT_EQ(text.find(command), std::string::npos) << text;
  }
}

TEST(Diagnosis, errors_come_before_warnings_and_causes_before_what_follows) {
  Recording recording = healthy_one("ring");
  Reading* now = nullptr;
  for (const char* line :
       {"@ n1 interfaces", "~/en2/mtu:9000 => /en2/mtu:1500", "~conf/en2/rp_filter:2 => conf/en2/rp_filter:1",
        "@ n2 ip -o address", "~10.77.2.1/24 => 10.77.9.1/24", "@ - faults", "+loss 1%"}) {
    edit(recording, now, line);
  }
  const Diagnosis diagnosis = diagnosis_of(recording);
  std::vector<std::string> ids;
  for (const Finding& one : diagnosis.findings) {
    ids.emplace_back(one.check->id);
  }
  EXPECT_EQ(ids, (std::vector<std::string>{"faults-injected", "mtu-differs", "subnets-differ", "rp-filter-strict"}));
  EXPECT_EQ(diagnosis.findings[3].follows_from, std::optional<size_t>(1));
}

TEST(Diagnosis, quotes_a_fault_that_a_shell_is_to_add_again) {
  Recording recording = healthy_one("ring");
  recording.at(kNoHost, "faults").text = "loss 1%; touch $(x)\n";
  const Diagnosis diagnosis = diagnosis_of(recording);
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_STREQ(std::string(diagnosis.findings[0].check->id).c_str(), "faults-injected");
  ASSERT_EQ(diagnosis.findings[0].undo.size(), 1U);
  const std::string& command = diagnosis.findings[0].undo[0].command;
  EXPECT_TRUE(command.ends_with(" 'loss 1%; touch $(x)'")) << command;
}

/// Names become host1, host2, ... in findings too; everything else stays.
TEST(Redaction, leaves_nothing_that_names_anybody_and_every_finding) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.check);
    const Recording clean = redacted(one.sick);
    const std::string text = emit_recording(clean);
    for (const char* secret : {"4c:bb:47", "4cbb:47", "4ebb:47", "spark1", "strix2", "02:3f:9c", "d5010000-0090",
                               "ada/", "mac1", "36:d2:11", "0x05AC5D4E8F0"}) {
      if (std::string(secret) != "0x05AC5D4E8F0") {
        EXPECT_EQ(text.find(secret), std::string::npos) << secret;
      }
    }
    const Diagnosis before = diagnosis_of(one.sick);
    const Diagnosis after = diagnosis_of(clean);
    ASSERT_EQ(before.findings.size(), after.findings.size()) << text_of(clean);
    for (size_t i = 0; i < before.findings.size(); ++i) {
      EXPECT_EQ(before.findings[i].check, after.findings[i].check);
    }
    EXPECT_EQ(parse_recording(text, "x"), clean);
  }
}

TEST(Redaction, replaces_secrets_public_addresses_and_hardware_the_same_way_everywhere) {
  Recording recording;
  recording.put(
      {"box.example.org", "environment",
       "NCCL_X=1\nRINGBOLT_SECRET=hunter2\nHF_TOKEN=abc\nMC_URL=https://bob:pw@box.example.org/x\nA=8.8.8.8:53\n"});
  recording.put({"box.example.org", "ip -o address",
                 "2: en2    inet 8.8.8.8/24 scope global en2\n2: en2    inet6 fe80::4ebb:47ff:fe01:1/64 scope link\n"
                 "2: en2    inet6 2a00:1450:4001:81b::200e/64\n3: en3    inet 10.1.2.3/24\n"});
  recording.put(
      {"box.example.org", "interfaces", "/sys/class/net/en2/address:4c:bb:47:01:00:01\n/sys/class/net/en2/mtu:9000\n"});
  recording.put(
      {"box.example.org", "devices",
       "/x/gids/1:fe80:0000:0000:0000:4ebb:47ff:fe01:0001\n/x/gids/3:0000:0000:0000:0000:0000:ffff:0808:0808\n"
       "/x/node_guid:4cbb:4701:0000:0001\n"});
  recording.put({"box.example.org", "ssh", "", "ssh: carol@box.example.org: refused at /home/carol/.ssh/config"});
  const std::string text = emit_recording(redacted(recording));
  for (const char* secret :
       {"hunter2", "abc", "bob", "pw@", "example", "8.8.8.8", "0808", "4c:bb", "4ebb", "4cbb", "2a00", "carol"}) {
    EXPECT_EQ(text.find(secret), std::string::npos) << secret << "\n" << text;
  }
  EXPECT_NE(text.find("10.1.2.3/24"), std::string::npos);
  EXPECT_NE(text.find("inet 198.51.100.1/24"), std::string::npos) << text;
  EXPECT_NE(text.find("A=198.51.100.1:53"), std::string::npos) << text;
  EXPECT_NE(text.find("ffff:c633:6401"), std::string::npos) << text;  // the same address as a GID
  EXPECT_NE(text.find("/address:02:00:00:00:00:01"), std::string::npos) << text;
  EXPECT_NE(text.find("fe80::ff:fe00:1/64"), std::string::npos) << text;  // and that MAC's
}

/// Truncated and mutated recordings: no crash, no exception, and a report.
TEST(Diagnosis, garbage_is_safe) {
  std::mt19937 random(7);
  for (const std::string& base : kBases) {
    const std::string whole = file_text(base + ".txt");
    for (int round = 0; round < 60; ++round) {
      std::string text = whole;
      for (size_t i = 0; i < text.size() / 200; ++i) {
        const size_t at = random() % text.size();
        switch (random() % 4) {
          case 0:
            text[at] = static_cast<char>(random() % 256);
            break;
          case 1:
            text.erase(at, random() % 20);
            break;
          case 2:
            text.insert(at, text.substr(random() % text.size(), random() % 30));
            break;
          default:
            text.insert(at, "99999999999999999999999");
        }
      }
      text.resize(random() % (text.size() + 1));
      const Recording recording = parse_recording(text, "x");
      const auto facts = facts_of(redacted(recording));
      const Diagnosis diagnosis = diagnose(*facts);
      EXPECT_FALSE(report_text(*facts, diagnosis).empty());
      EXPECT_FALSE(report_json(*facts, diagnosis).empty());
      EXPECT_FALSE(report_html(*facts, diagnosis).empty());
      for (const Finding& one : diagnosis_of(parse_pasted(text, "x")).findings) {
        EXPECT_NE(one.check, nullptr);
      }
    }
  }
}

}  // namespace
}  // namespace ringbolt::tools::doctor
