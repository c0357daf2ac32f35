import type { Config } from '../config/config.ts'

/**
 * What agents' environments are drawn from, as it is at each launch: the service's own without what is the service's
 * alone. What orc.yaml named once stays hidden, for the variable is there still when its name is not any more.
 */
export function agentEnvironment(
  config: () => Config,
  from: Readonly<NodeJS.ProcessEnv> = process.env,
): Readonly<NodeJS.ProcessEnv> {
  const hidden = new Set<string>()
  const isShown = (name: string | symbol): name is string => {
    for (const own of secretsOf(config())) hidden.add(own)
    return typeof name === 'string' && !hidden.has(name)
  }
  return new Proxy<NodeJS.ProcessEnv>(
    {},
    {
      ownKeys: () => Object.keys(from).filter(isShown),
      has: (_, name) => isShown(name) && from[name] !== undefined,
      get: (_, name) => (isShown(name) ? from[name] : undefined),
      getOwnPropertyDescriptor: (_, name) =>
        isShown(name) && from[name] !== undefined
          ? { value: from[name], enumerable: true, configurable: true, writable: false }
          : undefined,
      set: () => false,
    },
  )
}

/** The password of the store, the secrets of webhooks, and all that GitHub is reached with: agents propose. */
function secretsOf({ store, webhooks, github }: Config): string[] {
  const called = Object.values(github?.callbacks ?? {})
  const names = [
    ...[github?.secretEnv, github?.tokenEnv, github?.app?.keyEnv, github?.moderatorsUrlEnv],
    ...[...webhooks, ...called].flatMap(({ urlEnv, secretEnv }) => [urlEnv, secretEnv]),
    ...(store.engine === 'postgres' ? store.variables : []),
  ]
  return names.filter((name) => name !== undefined)
}
