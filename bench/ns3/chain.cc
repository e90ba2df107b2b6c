// UDP over a chain of six links in ns-3: the same packets as bench/packet-hops.yaml has, and nothing measured but time.
//
// Prints the packet-hops (frames that a link has finished sending) and the processor time of the event loop alone.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "figures.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

int
main(int argc, char* argv[])
{
    const uint32_t links = 6;
    const uint32_t payload = 1400;
    const double rate = 280e6;
    const double seconds = argc > 1 ? std::atof(argv[1]) : 10;

    NodeContainer nodes;
    nodes.Create(links + 1);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("300Mbps"));
    link.SetChannelAttribute("Delay", StringValue("500us"));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));
    InternetStackHelper stack;
    stack.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.1.0.0", "255.255.255.0");
    Ipv4Address last;
    for (uint32_t number = 0; number < links; ++number)
    {
        NetDeviceContainer devices = link.Install(nodes.Get(number), nodes.Get(number + 1));
        for (uint32_t end = 0; end < 2; ++end)
        {
            devices.Get(end)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&FrameSent));
        }
        last = addresses.Assign(devices).GetAddress(1);
        addresses.NewNetwork();
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    UdpServerHelper server(9);
    server.Install(nodes.Get(links)).Start(Seconds(0));
    UdpClientHelper client(last, 9);
    client.SetAttribute("MaxPackets", UintegerValue(UINT32_MAX));
    client.SetAttribute("Interval", TimeValue(Seconds(payload * 8 / rate)));
    client.SetAttribute("PacketSize", UintegerValue(payload));
    client.Install(nodes.Get(0)).Start(Seconds(0));

    Simulator::Stop(Seconds(seconds));
    const double began = ProcessorSeconds();
    Simulator::Run();
    const double took = ProcessorSeconds() - began;
    std::printf("%llu %.6f\n", static_cast<unsigned long long>(hops), took);
    Simulator::Destroy();
    return 0;
}
