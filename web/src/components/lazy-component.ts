import { type ComponentType, createElement, lazy } from 'react'

/** Resets of components that failed to load: React caches a failure until it gets a new lazy component. */
const failed = new Set<() => void>()

/** A component whose code is loaded when it is first shown. */
export function lazyComponent<Props extends object = object>(load: () => Promise<ComponentType<Props>>) {
  const attempt = () =>
    lazy(async () => {
      try {
        return { default: await load() }
      } catch (error) {
        failed.add(() => {
          current = attempt() as unknown as ComponentType<Props>
        })
        throw error
      }
    })
  let current = attempt() as unknown as ComponentType<Props>
  const Component = (props: Props) => createElement(current, props)
  return Object.assign(Component, { load })
}

/** Lets failed components load again when they are shown next. Returns whether there were any. */
export function retryFailedLoads(): boolean {
  const hadFailed = failed.size > 0
  for (const renew of failed) renew()
  failed.clear()
  return hadFailed
}
