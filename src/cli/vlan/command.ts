import { Command, Option } from 'commander';
import { OUTER_PROTOCOLS } from '../../vlan/end.ts';
import type { Invoke } from '../context.ts';
import { ALLOW_UNSIGNED } from '../global-options.ts';
import type { VlanFlags } from './run.ts';

/** The formats of `--format`; `run.ts` has the text of each. */
const FORMATS = [
  'iproute2',
  'networkd',
  'netplan',
  'nmcli',
  'ifupdown',
  'ansible',
  'json',
] as const satisfies readonly NonNullable<VlanFlags['format']>[];

/** `slices-conn vlan ID|FILE --site SITE --dev DEV …` (vlan/README.md, "Commands"). */
export function vlanCommand(invoke: Invoke): Command {
  return new Command('vlan')
    .summary('configure the network devices of a server for a reservation')
    .description(
      "Prints what a server at one of the reservation's sites needs: a device with the S-tag on the server's network device, and on it one with the C-tag. The reservation is verified before, offline where the service's key set is stored. A saved token is good until its reservation's end: whether it was deleted since, only the service knows, which is asked for a name or an id.\nNothing is changed, except with --apply, which runs the ip commands here, and --out, which writes files.",
    )
    .argument('[id|file]', 'its name or id; the file of its signed token; - for standard input')
    .requiredOption(
      '--dev <device>',
      "the server's network device that reaches the site's switch, such as eth1",
    )
    .option('--site <end>', 'where the server is: one of the two sites')
    .addOption(new Option('--format <format>', 'for which tool').choices(FORMATS).default('iproute2'))
    .option('--address <cidr>', "the server's address on the link, such as 10.0.0.1/24")
    .option('--mtu <bytes>', 'the largest packet; try 1496 where only small ones arrive (default: 1500)')
    .addOption(
      new Option('--outer <protocol>', 'the protocol of the S-tag')
        .choices(OUTER_PROTOCOLS)
        .default(OUTER_PROTOCOLS[0]),
    )
    .option('--remove', 'print what removes it again; an expired token will do')
    .option('--apply', 'run the ip commands here, as root; asks first')
    .option(...ALLOW_UNSIGNED)
    .option('--out <dir>', 'write the files below this folder; / puts them in place')
    .addHelpText(
      'after',
      `
Examples:
  slices-conn show ID --save link.jwt
  slices-conn vlan link.jwt --site be-gent1 --dev eth1 --address 10.0.0.1/24 | sudo sh -ex
  sudo slices-conn vlan link.jwt --site be-gent1 --dev eth1 --address 10.0.0.1/24 --apply
  slices-conn vlan link.jwt --site be-gent1 --dev eth1 --format networkd --out ./files
  slices-conn vlan link.jwt --site be-gent1 --dev eth1 --remove | sudo sh -ex`,
    )
    .action(invoke<VlanFlags>(async () => (await import('./run.ts')).vlan));
}
