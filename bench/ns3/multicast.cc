// UDP from one sender to a group in ns-3: the network and the tree that standard input describes, which are those of
// bench/multicast.yaml, and nothing measured but time.
//
// Input: the number of nodes and the sender; then a line for each link, `pair NODE NODE` or `segment NODE ...`; for each node
// that sends on a link, `sends NODE LINK`, the sender first and each before those it reaches; `receiver NODE`. A segment is
// CSMA, which has no switch and no contention either, where one station sends.
//
// Prints the packet-hops (frames that a node has finished sending) and the processor time of the event loop alone.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "figures.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/csma-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

static uint64_t received = 0;

static void
DatagramReceived(Ptr<const Packet>)
{
    ++received;
}

int
main(int argc, char* argv[])
{
    const uint32_t payload = 1400;
    const double rate = 50e6;
    const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
    const Ipv4Address group("239.192.0.1");

    uint32_t count = 0;
    uint32_t sender = 0;
    std::cin >> count >> sender;
    NodeContainer nodes;
    nodes.Create(count);
    InternetStackHelper stack;
    stack.Install(nodes);
    PointToPointHelper pair;
    pair.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    pair.SetChannelAttribute("Delay", StringValue("100us"));
    pair.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));
    CsmaHelper segment;
    segment.SetChannelAttribute("DataRate", StringValue("100Mbps"));
    segment.SetChannelAttribute("Delay", StringValue("100us"));
    segment.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.1.0.0", "255.255.255.0");

    // For each link, its devices by node.
    std::vector<std::map<uint32_t, Ptr<NetDevice>>> links;
    std::map<uint32_t, Ptr<NetDevice>> ingress;
    std::map<uint32_t, NetDeviceContainer> egress;
    UdpServerHelper server(9);
    std::string line;
    while (std::getline(std::cin, line))
    {
        std::istringstream words(line);
        std::string what;
        words >> what;
        uint32_t node = 0;
        if (what == "pair" || what == "segment")
        {
            NodeContainer ends;
            std::vector<uint32_t> numbers;
            while (words >> node)
            {
                numbers.push_back(node);
                ends.Add(nodes.Get(node));
            }
            NetDeviceContainer devices = what == "pair" ? pair.Install(ends) : segment.Install(ends);
            addresses.Assign(devices);
            addresses.NewNetwork();
            links.emplace_back();
            for (uint32_t end = 0; end < devices.GetN(); ++end)
            {
                devices.Get(end)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&FrameSent));
                links.back()[numbers[end]] = devices.Get(end);
            }
        }
        else if (what == "sends")
        {
            uint32_t link = 0;
            words >> node >> link;
            egress[node].Add(links[link][node]);
            for (auto& [other, device] : links[link])
            {
                if (other != node && other != sender)
                {
                    ingress[other] = device;
                }
            }
        }
        else if (what == "receiver")
        {
            words >> node;
            ApplicationContainer application = server.Install(nodes.Get(node));
            application.Start(Seconds(0));
            application.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&DatagramReceived));
        }
    }

    Ipv4StaticRoutingHelper routing;
    Ptr<Ipv4> root = nodes.Get(sender)->GetObject<Ipv4>();
    const Ipv4Address source = root->GetAddress(1, 0).GetLocal();
    for (auto& [node, devices] : egress)
    {
        if (node == sender)
        {
            routing.SetDefaultMulticastRoute(nodes.Get(node), devices.Get(0));
        }
        else
        {
            routing.AddMulticastRoute(nodes.Get(node), source, group, ingress[node], devices);
        }
    }
    UdpClientHelper client(group, 9);
    client.SetAttribute("MaxPackets", UintegerValue(UINT32_MAX));
    client.SetAttribute("Interval", TimeValue(Seconds(payload * 8 / rate)));
    client.SetAttribute("PacketSize", UintegerValue(payload));
    client.Install(nodes.Get(sender)).Start(Seconds(0));

    Simulator::Stop(Seconds(seconds));
    const double began = ProcessorSeconds();
    Simulator::Run();
    const double took = ProcessorSeconds() - began;
    std::printf("%llu %.6f %llu\n", static_cast<unsigned long long>(hops), took, static_cast<unsigned long long>(received));
    Simulator::Destroy();
    return 0;
}
