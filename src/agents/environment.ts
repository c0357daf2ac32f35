import type { Config } from '../config/config.ts'

/**
 * The service's environment without its secrets, as the base of every agent's environment. A live view: each launch sees
 * the current values. A variable that orc.yaml once named stays hidden after its name is removed there, because it is
 * still set.
 */
export function agentEnvironment(
  config: () => Config,
  from: Readonly<NodeJS.ProcessEnv> = process.env,
): Readonly<NodeJS.ProcessEnv> {
  const hidden = new Set<string>()
  let seen: Config | undefined
  const isShown = (name: string | symbol): name is string => {
    const current = config()
    if (current !== seen) for (const own of secretsOf(current)) hidden.add(own)
    seen = current
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

/** The store's password, webhook secrets, and GitHub credentials: agents propose changes, only the service makes them. */
function secretsOf({ store, webhooks, github }: Config): string[] {
  const called = Object.values(github?.callbacks ?? {})
  const names = [
    ...[github?.secretEnv, github?.tokenEnv, github?.app?.keyEnv, github?.moderatorsUrlEnv],
    ...[...webhooks, ...called].flatMap(({ urlEnv, secretEnv }) => [urlEnv, secretEnv]),
    ...(store.engine === 'postgres' ? store.variables : []),
  ]
  return names.filter((name) => name !== undefined)
}
