import type { Environment } from '../session/profiles/folders.ts';

/**
 * Opens an address in the person's browser, if a person sits in front of this terminal: not over ssh, not in CI.
 *
 * @returns whether a browser was started
 */
export async function openBrowser(address: string, env: Environment): Promise<boolean> {
  const remote = env['SSH_CONNECTION'] || env['SSH_TTY'] || env['CI'];
  if (!process.stderr.isTTY || remote) return false;
  const opener = env['BROWSER'] || (process.platform === 'darwin' ? 'open' : 'xdg-open');
  if (!env['BROWSER'] && process.platform === 'linux' && !env['DISPLAY'] && !env['WAYLAND_DISPLAY'])
    return false;
  const { spawn } = await import('node:child_process');
  return new Promise((resolve) => {
    // No shell: the address comes from a service.
    const browser = spawn(opener, [address], { stdio: 'ignore', detached: true });
    browser.once('error', () => resolve(false));
    browser.once('spawn', () => {
      browser.unref();
      resolve(true);
    });
  });
}
