/** The facts of a release that the files of installers have. */
export interface ReleaseFacts {
  version: string;
  /** Its purpose, in a line. */
  summary: string;
  description: string;
  license: string;
  homepage: string;
  repository: { url: string };
  /** The SHA-256 of each file of the release, by its name. */
  sums: ReadonlyMap<string, string>;
}

/** Where a file of the release is fetched from. */
function addressOf({ repository, version }: ReleaseFacts, name: string): string {
  const page = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');
  return `${page}/releases/download/v${version}/${name}`;
}

/** @throws Error for a file that the release does not have */
function sumOf({ sums }: ReleaseFacts, name: string): string {
  const sum = sums.get(name);
  if (sum === undefined) throw new Error(`the release has no ${name}`);
  return sum;
}

/** The formula for Homebrew (Homebrew, "Formula Cookbook"), on macOS and Linux. */
export function formula(facts: ReleaseFacts): string {
  const { version, summary, license, homepage } = facts;
  const source = (system: string, architecture: string, platform: string): string => {
    const name = `slices-conn-${version}-${platform}.tar.gz`;
    return `  on_${system} do
    on_${architecture} do
      url "${addressOf(facts, name)}"
      sha256 "${sumOf(facts, name)}"
    end
  end
`;
  };
  return `# Made by npm run package.
class SlicesConn < Formula
  desc "${summary}"
  homepage "${homepage}"
  version "${version}"
  license "${license}"

${[
  source('macos', 'arm', 'darwin-arm64'),
  source('macos', 'intel', 'darwin-x64'),
  source('linux', 'arm', 'linux-arm64'),
  source('linux', 'intel', 'linux-x64'),
].join('\n')}
  def install
    bin.install "slices-conn"
    man1.install "slices-conn.1"
    bash_completion.install "completions/slices-conn"
    zsh_completion.install "completions/_slices-conn"
    fish_completion.install "completions/slices-conn.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/slices-conn --version")
  end
end
`;
}

/** The manifest for Scoop (Scoop, "App Manifests"), on Windows. */
export function scoopManifest(facts: ReleaseFacts): string {
  const { version, description, license, homepage } = facts;
  const folder = `slices-conn-${version}-win32-x64`;
  const name = `${folder}.zip`;
  const content = {
    ...{ version, description, homepage, license },
    architecture: { '64bit': { url: addressOf(facts, name), hash: sumOf(facts, name), extract_dir: folder } },
    bin: 'slices-conn.exe',
  };
  return `${JSON.stringify(content, null, 4)}\n`;
}
