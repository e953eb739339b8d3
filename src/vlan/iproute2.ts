import { shellWord } from '../contract/failure.ts';
import { type Configuration, shellScript } from './configuration.ts';
import { type End, protocolName } from './end.ts';

/** A program and its arguments. */
export type ProgramCall = readonly string[];

/** The call of `ip` that makes a VLAN device. @param parent the device that carries it */
export function addLinkCall(
  parent: string,
  name: string,
  mtu: number,
  protocol: string,
  tag: number,
): ProgramCall {
  return [
    ...['ip', 'link', 'add', 'link', parent, 'name', name, 'mtu', String(mtu)],
    ...['type', 'vlan', 'proto', protocol, 'id', String(tag)],
  ];
}

/** The calls of `ip` that make the devices of an end. */
export interface IpCalls {
  /** Makes the device below ready: a device's MTU can't be above that of the device below it. */
  readonly device: ProgramCall;
  readonly outer: ProgramCall;
  readonly inner: ProgramCall;
  /** Only where the end has an address. */
  readonly address?: ProgramCall;
  readonly up: readonly ProgramCall[];
}

/** See {@link IpCalls}. @param inner the name of the inner device, by default that of the end */
export function ipCalls(
  { device, names, sTag, cTag, outer, mtu, address }: End,
  inner = names.inner,
): IpCalls {
  return {
    device: ['ip', 'link', 'set', 'dev', device, 'mtu', String(mtu.device), 'up'],
    outer: addLinkCall(device, names.outer, mtu.outer, protocolName(outer), sTag),
    inner: addLinkCall(names.outer, inner, mtu.inner, protocolName('802.1q'), cTag),
    ...(address === null ? {} : { address: ['ip', 'address', 'add', address, 'dev', inner] }),
    up: [names.outer, inner].map((name) => ['ip', 'link', 'set', 'dev', name, 'up']),
  };
}

/** {@link ipCalls} in the order in which they work. */
export function ipCallsInOrder(end: End): readonly ProgramCall[] {
  const { device, outer, inner, address, up } = ipCalls(end);
  return [device, outer, inner, ...(address ? [address] : []), ...up];
}

/** The call of `ip` that removes the outer device, and the inner one with it. */
export function removalCall({ names }: Pick<End, 'names'>): ProgramCall {
  return ['ip', 'link', 'del', names.outer];
}

/** A call as a line for a shell. */
export function shellLine(call: ProgramCall): string {
  return call.map(shellWord).join(' ');
}

/** A line that removes the devices where the tool of another format has left them behind. */
export function removalLine({ names }: Pick<End, 'names'>): string {
  return `${shellLine(removalCall({ names }))} 2>/dev/null || [ ! -e /sys/class/net/${names.outer} ]`;
}

/** What a person should know about the MTU of the device below. */
export function aboutDeviceMtu({ device, mtu }: Pick<End, 'device' | 'mtu'>): string {
  return `The MTU of ${device} becomes ${mtu.device}. Where it is larger already (ip link show ${device}), leave that part out.`;
}

/** The commands of iproute2. */
export function iproute2(end: End): Configuration {
  return shellScript(end, {
    about: [aboutDeviceMtu(end), 'It lasts until the server restarts.'],
    commands: ipCallsInOrder(end).map(shellLine),
    remove: [shellLine(removalCall(end))],
  });
}
