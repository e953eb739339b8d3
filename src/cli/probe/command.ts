import { Command, Option } from 'commander';
import { OUTER_PROTOCOLS } from '../../vlan/end.ts';
import type { Invoke } from '../context.ts';
import { ALLOW_UNSIGNED } from '../global-options.ts';
import type { ProbeFlags } from './run.ts';

/** `slices-conn probe ID|FILE|- --site SITE --dev DEV --peer ADDRESS [--far FILE]`. */
export function probeCommand(invoke: Invoke): Command {
  return new Command('probe')
    .summary('say why nothing comes through a reserved link')
    .description(
      "Looks at this end of a reserved link, pings the other end, listens to what arrives, and says where the fault is. It leaves nothing behind, and sends with the reservation's own tags only. Run it at both ends at the same time: what one end sends is what the other hears. Listening needs root. Exits with 0 where the link works, and with 6 for every other verdict.",
    )
    .argument('[id|file]', 'its name or id; the file of its signed token; - for standard input')
    .requiredOption(
      '--dev <device>',
      "the server's network device that reaches the site's switch, such as eth1",
    )
    .option('--site <end>', 'where the server is: one of the two sites')
    .option(...ALLOW_UNSIGNED)
    .requiredOption('--peer <address>', "the other end's IP address")
    .option('--far <file>', 'what probe --json printed at the other end: both are judged together')
    .option('--mtu <bytes>', 'as it was given to vlan (default: 1500)')
    .addOption(
      new Option('--outer <protocol>', 'as it was given to vlan')
        .choices(OUTER_PROTOCOLS)
        .default(OUTER_PROTOCOLS[0]),
    )
    .addHelpText(
      'after',
      `
Verdicts:
  ok                    the link works, at the full size
  own_tags_swapped      this end: the C-tag is outside, the S-tag inside
  own_ethertype         this end: the outer tag is 802.1Q in place of 802.1ad
  own_other_sites_tags  this end has the other site's tags
  own_device            this end: a device is missing, down, or without address
  own_mtu               this end: an MTU is too small
  far_tags_swapped      the other end: the C-tag is outside, the S-tag inside
  far_ethertype         the other end: the outer tag is 802.1Q
  far_c_tag             the other end: another C-tag
  single_tagged         the other end sends one tag only
  far_does_not_hear     the other end sends, and does not answer
  silent                nothing arrives
  path_mtu              large packets are lost in the network

Examples:
  slices-conn probe link.jwt --site be-gent1 --dev eth1 --peer 10.0.0.2

Both ends together, the first two at the same time:
  sudo slices-conn probe link.jwt --site be-gent1 --dev eth1 --peer 10.0.0.2 --json > be-gent1.json
  sudo slices-conn probe link.jwt --site pl-poznan1 --dev eth1 --peer 10.0.0.1
  sudo slices-conn probe link.jwt --site pl-poznan1 --dev eth1 --peer 10.0.0.1 --far be-gent1.json`,
    )
    .action(invoke<ProbeFlags>(async () => (await import('./run.ts')).probe));
}
