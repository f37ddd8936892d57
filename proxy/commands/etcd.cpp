#include "etcd/ask.hpp"
#include "etcd/report.hpp"
#include "inventory/checks.hpp"
#include "proxy/commands/commands.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace kubelane::commands {
namespace {

struct etcd_options {
  std::vector<std::string> endpoints;
  std::string ca_file, certificate_file, key_file;
  std::string remove, without;
  std::vector<std::string> domains;
  std::string inventory;
  bool json = false;
};

int wrong(const std::string& why) {
  std::cerr << "kubelane etcd status: " << why << '\n';
  return usage_error;
}

// In a shell's words, when it is not one already.
std::string quoted(const std::string& text) {
  if (text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "/._-+:,=@%") == std::string::npos)
    return text;
  std::string result = "'";
  for (const char letter : text)
    if (letter == '\'')
      result += "'\\''";
    else
      result += letter;
  return result + "'";
}

// What whoever runs a printed command has to set besides the endpoints: what is not set already.
std::string variables(const etcd_options& from) {
  std::string result;
  const auto add = [&](const char* name, const std::string& value) {
    const char* set = std::getenv(name);
    if (!value.empty() && (set == nullptr || value != set))
      result += std::string(name) + "=" + quoted(value) + " ";
  };
  add("ETCDCTL_CACERT", from.ca_file);
  add("ETCDCTL_CERT", from.certificate_file);
  add("ETCDCTL_KEY", from.key_file);
  return result;
}

boost::system::result<std::vector<etcd::url>, std::string> read_endpoints(
    const etcd_options& options) {
  std::vector<etcd::url> result;
  for (const auto& text : options.endpoints) {
    const auto parsed = etcd::parse_url(text);
    if (!parsed) return "--endpoints: " + parsed.error();
    if (std::find(result.begin(), result.end(), *parsed) == result.end()) result.push_back(*parsed);
    if (parsed->tls && options.ca_file.empty())
      return text +
             " needs --cacert, the CA of etcd: /etc/ssl/etcd/ssl/ca.pem with kubespray, "
             "/etc/kubernetes/pki/etcd/ca.crt with kubeadm";
  }
  if (options.certificate_file.empty() != options.key_file.empty())
    return std::string("--cert and --key belong together: give both or neither");
  return result;
}

// The failure domains of an inventory's etcd hosts; nothing if it cannot be read, which was said.
std::optional<std::vector<etcd::placed_host>> read_hosts(const std::string& path) {
  auto reading = inventory::read({path}, std::cin);
  for (const auto& one : reading.findings)
    if (one.how == inventory::severity::error) {
      std::cerr << "kubelane etcd status: --inventory " << path << ": " << one.message << '\n';
      return std::nullopt;
    }
  std::vector<etcd::placed_host> result;
  for (const auto& one : inventory::check(reading, {}).seen.etcd)
    result.push_back({one.name, one.address.text, one.zone});
  return result;
}

// Adds the domains' losses to what is printed; what is wrong with them, or nothing.
std::string add_domains(etcd::report& to, const std::vector<etcd::domain>& given,
                        const std::vector<etcd::placed_host>& hosts) {
  const auto domains = given.empty() ? etcd::place(to.view, hosts) : given;
  if (domains.empty() || to.view.is == etcd::verdict::no_answer) return {};
  auto losses = etcd::lose_domains(to.view, domains);
  if (!losses) return losses.error();
  to.domains = std::move(*losses);
  return {};
}

std::string add_decision(etcd::report& to, const etcd_options& options) {
  const bool removes = !options.remove.empty();
  const auto& name = removes ? options.remove : options.without;
  if (name.empty() || to.view.is == etcd::verdict::no_answer) return {};
  const auto member = etcd::find_member(to.view, name);
  if (!member) return (removes ? "--remove: " : "--without: ") + member.error();
  to.asked = etcd::decide(to.view, **member, removes ? etcd::intent::remove : etcd::intent::without,
                          variables(options));
  return {};
}

int show(const etcd_options& options) {
  const auto endpoints = read_endpoints(options);
  if (!endpoints) return wrong(endpoints.error());
  std::vector<etcd::domain> domains;
  for (const auto& text : options.domains) {
    const auto parsed = etcd::parse_domain(text);
    if (!parsed) return wrong("--domains: " + parsed.error());
    domains.push_back(*parsed);
  }
  std::vector<etcd::placed_host> hosts;
  if (!options.inventory.empty()) {
    auto read = read_hosts(options.inventory);
    if (!read) return usage_error;
    hosts = std::move(*read);
  }
  const auto files =
      etcd::read_credentials(options.ca_file, options.certificate_file, options.key_file);
  if (!files) return wrong(files.error());
  etcd::report result{
      .view = etcd::judge(etcd::ask_cluster(*endpoints, *files)), .domains = {}, .asked = {}};
  for (const auto& trouble : {add_domains(result, domains, hosts), add_decision(result, options)})
    if (!trouble.empty()) return wrong(trouble);
  result.exit_status = etcd::exit_status_of(result.view, result.asked);
  std::cout << (options.json ? report_json(result) : report_text(result)) << std::flush;
  return result.exit_status;
}

void add_list(CLI::App& to, const char* name, std::vector<std::string>& into, const char* help,
              const char* variable) {
  auto* option = to.add_option(name, into, help)
                     ->delimiter(',')
                     ->expected(1)
                     ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  if (variable != nullptr) option->envname(variable);
}

void add_etcd_status(CLI::App& etcd, int& status) {
  auto options = std::make_shared<etcd_options>();
  auto* command = etcd.add_subcommand(
      "status", "live members, leader, quorum, failures left; may this member go now?");
  add_list(*command, "--endpoints", options->endpoints,
           "where members serve clients, as https://10.0.0.11:2379; members that they list are "
           "asked too",
           "ETCDCTL_ENDPOINTS");
  command->get_option("--endpoints")->required();
  command->add_option("--cacert", options->ca_file, "the CA of etcd's certificates")
      ->envname("ETCDCTL_CACERT");
  command->add_option("--cert", options->certificate_file, "certificate to show")
      ->envname("ETCDCTL_CERT");
  command->add_option("--key", options->key_file, "key of that certificate")
      ->envname("ETCDCTL_KEY");
  auto* remove = command->add_option("--remove", options->remove,
                                     "may this member (name or ID) be removed now? in what order?");
  command->add_option("--without", options->without, "may this member reboot or stop now?")
      ->excludes(remove);
  add_list(*command, "--domains", options->domains,
           "members in each failure domain, as a=e1+e2,b=e3: what each one's loss leaves", nullptr);
  command->add_option("--inventory", options->inventory, "take failure domains from this inventory")
      ->excludes("--domains");
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "Exit status: 0 healthy, 1 degraded, 2 no quorum, 3 no answer. With --remove or --without: 0 "
      "it is safe now, 1 it is not, 2 no quorum, 3 no answer. 64 the command line or a file is "
      "wrong. Ends within three seconds and changes nothing.");
  command->callback([options, &status] { status = show(*options); });
}

}  // namespace

void add_etcd(CLI::App& app, int& status) {
  auto* command =
      app.add_subcommand("etcd", "the state of the etcd cluster behind the API servers");
  command->require_subcommand(1);
  add_etcd_status(*command, status);
}

}  // namespace kubelane::commands
