/** The package manager that the user calls, and its commands. */
export interface PackageManager {
  readonly name: 'npm' | 'pnpm' | 'yarn';
  readonly major: number;
}

/** Reads what package managers say about themselves in `npm_config_user_agent`: `pnpm/12.21.0 npm/? node/v24.0.0`. */
export function packageManager(userAgent = ''): PackageManager {
  const [, name, major] = /^(pnpm|yarn)\/(\d+)/.exec(userAgent) ?? [];
  return { name: name === 'pnpm' || name === 'yarn' ? name : 'npm', major: Number(major ?? 0) };
}

/** The command that runs a script of package.json. */
export const scriptCommand = ({ name }: PackageManager, script: string): string =>
  name === 'npm' && script !== 'test' ? `npm run ${script}` : `${name} ${script}`;

/** The command that runs a program of a dependency. */
export const programCommand = ({ name }: PackageManager): string => (name === 'npm' ? 'npx' : name);

/**
 * Settings that the package manager reads from files of its own, by path. `allowScripts` names the dependencies with a
 * script at their installation, and whether it may run.
 */
export function settings(
  { name, major }: PackageManager,
  allowScripts: Readonly<Record<string, boolean>>,
): Readonly<Record<string, string>> {
  // pnpm fails until each of them is named; npm, which reads package.json, only warns.
  const lines = Object.entries(allowScripts).map(([dependency, allowed]) => `  '${dependency}': ${allowed}\n`);
  if (name === 'pnpm') return { 'pnpm-workspace.yaml': `allowBuilds:\n${lines.join('')}` };
  // tsx, which loads the agents, needs packages in node_modules.
  if (name === 'yarn' && major >= 2) return { '.yarnrc.yml': 'nodeLinker: node-modules\n' };
  return {};
}
