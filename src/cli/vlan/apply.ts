import { Failure, type FailureFacts, shellWord } from '../../contract/failure.ts';
import { hinted } from '../../session/choice.ts';
import { assumedOf, type End } from '../../vlan/end.ts';
import { describeEnd } from '../../vlan/formats.ts';
import { deleteCall, ipCalls, iproute2, type ProgramCall, shellLine } from '../../vlan/iproute2.ts';
import type { Context, Machine } from '../context.ts';
import { addressesOf, type Device, devicesOf } from '../probe/devices.ts';
import { outerEthertype, Q } from '../probe/stacks.ts';
import { checkConfirmable, confirm } from '../questions.ts';

/** A call, and the call that takes its effect back; null where there is nothing to take back. */
interface Step {
  readonly call: ProgramCall;
  readonly undo: ProgramCall | null;
}

/**
 * Makes the devices of an end on this machine, or removes them: reads what is there, shows what it would run,
 * and asks. Devices that are there already stay, so that the command can be run again.
 *
 * @throws Failure `usage` for a conflict, before anything is changed; `not_supported` for a command that the
 *   kernel refused: what was done before it is taken back. Declined when the answer is no
 */
export async function applyEnd(context: Context, end: End, removing: boolean): Promise<void> {
  const { processes: machine, output } = context;
  const unasked = 'The changes to network devices were not confirmed.';
  checkConfirmable(context, unasked);
  const steps = await stepsFor(end, machine, removing);
  if (steps.length > 0) {
    output.prompt(removing ? 'This removes the devices:' : 'This makes the devices:');
    for (const { call } of steps) output.prompt(`  ${shellLine(call)}`);
    const question = steps.length === 1 ? 'Run this command?' : `Run these ${steps.length} commands?`;
    await confirm(context, question, { unasked, declined: 'Nothing was changed.' });
    await runAll(steps, machine);
  }
  const ran = steps.map(({ call }) => shellLine(call));
  const result = { ...describeEnd(end, iproute2(end), removing), ran };
  await output.result(result, (print) => {
    const { names, site, device, mtu, sTag, cTag, address } = end;
    const { green } = print.paint;
    if (removing) {
      return ran.length === 0
        ? `There is no ${names.inner} here: nothing to remove.\n`
        : `${green('Removed')} ${removed(steps, end)} at ${site}\n`;
    }
    const title = `${ran.length === 0 ? 'Everything is there already' : green('Applied')}: the end at ${site}`;
    return print.card(title, [
      [device, `MTU ${mtu.device} or more`],
      [names.outer, `S-tag ${sTag}   MTU ${mtu.outer}`],
      [names.inner, `C-tag ${cTag}   MTU ${mtu.inner}${address === null ? '' : `   ${address}`}`],
    ]);
  });
  if (output.json || removing) return;
  for (const line of assumedOf(end)) output.notice(line);
}

async function stepsFor(end: End, machine: Machine, removing: boolean): Promise<readonly Step[]> {
  const devices = await devicesHere(machine);
  return removing ? stepsToRemove(end, devices) : stepsToMake(end, devices, machine);
}

/** The outer device stays where it carries another one. @throws Failure `usage` for a conflict */
function stepsToRemove({ device, names }: End, devices: readonly Device[]): readonly Step[] {
  const own = ([name, parent]: readonly [string, string]): readonly Device[] => {
    const found = devices.filter((one) => one.name === name);
    for (const one of found) {
      if (one.tag === undefined || one.parent !== parent)
        throw conflict(one, `it is not a VLAN of ${parent}`);
    }
    return found;
  };
  const outer = own([names.outer, device]);
  const inner = own([names.inner, names.outer]);
  const isShared = devices.some(({ name, parent }) => parent === names.outer && name !== names.inner);
  const [first] = isShared ? inner : outer;
  return first ? [{ call: deleteCall(first.name), undo: null }] : [];
}

/** The devices that the steps of a removal have removed, in words. */
function removed(steps: readonly Step[], { names }: End): string {
  const isShared = steps.some(({ call }) => call.includes(names.inner));
  return isShared
    ? `${names.inner}; ${names.outer} carries another device, and stays,`
    : `${names.outer} and ${names.inner}`;
}

/** The steps that are still needed. @throws Failure `usage` for a conflict */
async function stepsToMake(end: End, devices: readonly Device[], machine: Machine): Promise<readonly Step[]> {
  const { device, names, sTag, cTag, mtu, address } = end;
  const below = devices.find(({ name }) => name === device);
  if (!below) {
    const names = devices.map(({ name }) => name);
    throw new Failure('usage', hinted(`This machine has no network device ${device}.`, device, names), {
      why: `It has ${names.join(', ')}.`,
      fix: 'ip link',
    });
  }
  const outerTag = { ethertype: outerEthertype(end), id: sTag };
  const own = existing(devices, { name: names.outer, parent: device, tag: outerTag });
  const innerTag = { ethertype: Q, id: cTag };
  const inner = existing(devices, { name: names.inner, parent: names.outer, tag: innerTag, mtu: mtu.inner });
  const calls = ipCalls(end);
  const isWide = below.mtu >= mtu.device;
  const down = (name: string): ProgramCall => ['ip', 'link', 'set', 'dev', name, 'down'];
  const steps: Step[] = [];
  // A larger MTU stays: a smaller one would take the devices of others with it.
  if (!isWide) {
    const before: ProgramCall = ['ip', 'link', 'set', 'dev', device, 'mtu', String(below.mtu)];
    steps.push({ call: calls.device, undo: below.isUp ? before : [...before, 'down'] });
  } else if (!below.isUp) steps.push({ call: calls.up.device, undo: down(device) });
  if (!own) steps.push({ call: calls.outer, undo: deleteCall(names.outer) });
  else if (own.mtu < mtu.outer) {
    const before = ['ip', 'link', 'set', 'dev', names.outer, 'mtu', String(own.mtu)];
    steps.push({ call: calls.outerMtu, undo: before });
  }
  if (!inner) steps.push({ call: calls.inner, undo: deleteCall(names.inner) });
  if (calls.address && address !== null) {
    const has = inner ? await addressesOf(names.inner, machine) : [];
    if (!has.includes(address)) {
      steps.push({ call: calls.address, undo: ['ip', 'address', 'del', address, 'dev', names.inner] });
    }
  }
  for (const [which, found] of [
    ['outer', own],
    ['inner', inner],
  ] as const) {
    if (!found?.isUp) steps.push({ call: calls.up[which], undo: down(names[which]) });
  }
  return steps;
}

/**
 * The VLAN device that is due, where it is there already.
 *
 * @param due without an MTU where several reservations share the device: it has that of the largest
 * @throws Failure `usage` when a device of its name, or with its tag on the same parent, differs in anything
 */
function existing(
  devices: readonly Device[],
  due: Required<Pick<Device, 'name' | 'parent'>> & { tag: NonNullable<Device['tag']>; mtu?: number },
): Device | undefined {
  const { name, parent, tag, mtu } = due;
  const found = devices.filter(
    (device) => device.name === name || (device.parent === parent && device.tag?.id === tag.id),
  );
  for (const device of found) {
    const says = (what: string, is: string, wanted: string) =>
      conflict(device, `its ${what} is ${is}, and ${wanted} is due`);
    if (device.tag === undefined) throw conflict(device, 'it is not a VLAN device');
    if (device.parent !== parent) throw says('device below', device.parent ?? 'none', parent ?? 'none');
    if (device.name !== name) throw conflict(device, `it has the tag ${tag.id} on ${parent} already`);
    if (device.tag.id !== tag.id) throw says('tag', String(device.tag.id), String(tag.id));
    if (device.tag.ethertype !== tag.ethertype)
      throw says('ethertype', `0x${device.tag.ethertype}`, `0x${tag.ethertype}`);
    if (mtu !== undefined && device.mtu !== mtu) throw says('MTU', String(device.mtu), String(mtu));
  }
  return found[0];
}

function conflict({ name }: Pick<Device, 'name'>, why: string): Failure {
  return new Failure('usage', `The device ${name} is in the way.`, {
    why: `There is one already: ${why}. Nothing was changed.`,
    fix: `ip -d link show ${shellWord(name)}`,
  });
}

/** @throws Failure `usage` where this machine has no `ip` */
async function devicesHere(machine: Machine): Promise<readonly Device[]> {
  try {
    return await devicesOf(machine);
  } catch (error) {
    if (!(error instanceof Failure) || !error.code.startsWith('command_')) throw error;
    throw new Failure('usage', '--apply needs the command ip.', {
      why: `${error.message} It is in the package iproute2. Nothing was changed.`,
      cause: error,
    });
  }
}

/** Runs steps. After a failure the earlier ones are undone, last first. @throws Failure `not_supported` */
async function runAll(steps: readonly Step[], { runProgram }: Machine): Promise<void> {
  const done: Step[] = [];
  for (const step of steps) {
    const fault = await faultOf(step.call, runProgram);
    if (fault === undefined) {
      done.push(step);
      continue;
    }
    const left: string[] = [];
    for (const { undo } of done.toReversed()) {
      const stays = undo && (await faultOf(undo, runProgram));
      if (undo && stays !== undefined && stays !== null) left.push(`${shellLine(undo)}: ${stays}`);
    }
    // Of a VLAN device the kernel says no more than this.
    const lacks = step.call.includes('vlan') && /unknown device type|operation not supported/i.test(fault);
    const why = `${fault}${lacks ? ' This kernel has no 802.1Q, or its module is not loaded.' : ''}`;
    const facts: FailureFacts =
      left.length === 0
        ? { why: `${why} What was done before was taken back.` }
        : { why: `${why} Not everything could be taken back. What failed:`, lines: left };
    throw new Failure('not_supported', `This command failed: ${shellLine(step.call)}`, {
      ...facts,
      ...(lacks ? { fix: 'sudo modprobe 8021q' } : {}),
    });
  }
}

/** Why a call failed, as a sentence; undefined where it did not. */
async function faultOf(call: ProgramCall, runProgram: Machine['runProgram']): Promise<string | undefined> {
  try {
    const { exitCode, stderr } = await runProgram(call);
    if (exitCode === 0) return undefined;
    const [said = ''] = stderr.trim().split('\n');
    return said === '' ? `It ended with ${exitCode}.` : `It said: ${said.replace(/\.?$/, '.')}`;
  } catch (error) {
    if (error instanceof Failure) return error.message;
    throw error;
  }
}
