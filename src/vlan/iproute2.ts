import { shellWord } from '../contract/failure.ts';
import { type Configuration, configurationOf } from './configuration.ts';
import { type End, protocolName } from './end.ts';

/** A program and its arguments. */
export type ProgramCall = readonly string[];

/** The call of `ip` that makes a VLAN device. @param parent the device that carries it */
function addLinkCall(parent: string, name: string, mtu: number, protocol: string, tag: number): ProgramCall {
  return [
    ...['ip', 'link', 'add', 'link', parent, 'name', name, 'mtu', String(mtu)],
    ...['type', 'vlan', 'proto', protocol, 'id', String(tag)],
  ];
}

/** The calls of `ip` that make the devices of an end. */
export function ipCalls({ device, names, sTag, cTag, outer, mtu, address }: End) {
  return {
    /** Makes the device below ready: a device's MTU can't be above that of the device below it. */
    device: setCall(device, 'mtu', String(mtu.device), 'up'),
    outer: addLinkCall(device, names.outer, mtu.outer, protocolName(outer), sTag),
    /** Where the outer device is there with a smaller MTU, for another reservation. */
    outerMtu: setCall(names.outer, 'mtu', String(mtu.outer)),
    inner: addLinkCall(names.outer, names.inner, mtu.inner, protocolName('802.1q'), cTag),
    /** Only where the end has an address. */
    address: address === null ? undefined : ['ip', 'address', 'replace', address, 'dev', names.inner],
    up: {
      device: setCall(device, 'up'),
      outer: setCall(names.outer, 'up'),
      inner: setCall(names.inner, 'up'),
    },
  };
}

/** {@link ipCalls} as lines for a shell of root, which may be run again and touch nothing of others. */
export function ipLines(end: End) {
  const { device, names, mtu } = end;
  const calls = ipCalls(end);
  // A smaller MTU would take that of each device above with it.
  const below = atLeast(device, mtu.device, calls.device);
  const add = (name: string, call: ProgramCall): string => `[ -e ${placeOf(name)} ] || ${shellLine(call)}`;
  return {
    /** Make the MTUs of the device below, and of the outer one where it is there, large enough. */
    mtu: [below, atLeast(names.outer, mtu.outer, calls.outerMtu)] as const,
    /** Make the outer device where it is missing, on the device below, which they make ready. */
    outer: [below, shellLine(calls.up.device), add(names.outer, calls.outer), shellLine(calls.up.outer)],
    inner: [
      add(names.inner, calls.inner),
      ...(calls.address ? [shellLine(calls.address)] : []),
      shellLine(calls.up.inner),
    ],
  };
}

/** A line that runs a call where a device's MTU is smaller than it has to be. */
function atLeast(device: string, mtu: number, call: ProgramCall): string {
  return `[ "$(cat ${placeOf(device, 'mtu')})" -ge ${mtu} ] || ${shellLine(call)}`;
}

/** Where the kernel shows a device, or a file about it, quoted for a shell. */
export function placeOf(device: string, file?: string): string {
  return shellWord(['/sys/class/net', device, ...(file === undefined ? [] : [file])].join('/'));
}

/** A call as a line for a shell. */
export function shellLine(call: ProgramCall): string {
  return call.map(shellWord).join(' ');
}

/** The call of `ip` that changes a device. */
export function setCall(name: string, ...what: readonly string[]): ProgramCall {
  return ['ip', 'link', 'set', 'dev', name, ...what];
}

/** The call of `ip` that removes a device, with all that it carries. */
export function deleteCall(name: string): ProgramCall {
  return ['ip', 'link', 'del', name];
}

/**
 * A line that removes a device, where it is there.
 *
 * @param isRaced whether another tool removes it at the same time: then it is no news that it is gone.
 *   Default false
 */
export function deleteLine(name: string, isRaced = false): string {
  const silent = isRaced ? ' 2>/dev/null' : '';
  return `[ ! -e ${placeOf(name)} ] || ${shellLine(deleteCall(name))}${silent} || [ ! -e ${placeOf(name)} ]`;
}

/** A condition for a shell: whether a device carries another one. */
export function carriesAnother(device: string): string {
  return `ls -d ${placeOf(device, 'upper_')}* >/dev/null 2>&1`;
}

/** Lines that remove the inner device, and the outer one where it carries no other. */
export function removalLines({ names: { outer, inner } }: Pick<End, 'names'>): readonly string[] {
  return [deleteLine(inner), `${carriesAnother(outer)} || ${deleteLine(outer)}`];
}

/** A sentence about the MTU of the device below, where it is a setting in a file. */
export function aboutDeviceMtu({ device, mtu }: Pick<End, 'device' | 'mtu'>): string {
  return `The MTU of ${device} becomes ${mtu.device}. Where it is larger already (ip link show ${device}), put that number in its place.`;
}

/** The commands of iproute2. */
export function iproute2(end: End): Configuration {
  const { mtu, outer, inner } = ipLines(end);
  const [, outerMtu] = mtu;
  return configurationOf(end, {
    about: ['It lasts until the server restarts.'],
    commands: [...outer, outerMtu, ...inner],
    remove: removalLines(end),
  });
}
