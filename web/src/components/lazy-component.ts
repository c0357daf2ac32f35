import { type ComponentType, createElement, lazy } from 'react'

/** Parts that could not be had; React keeps a failure for good unless it gets another part in its place. */
const failed = new Set<() => void>()

/** A part that is loaded when it is first shown. */
export function later<Props extends object = object>(load: () => Promise<ComponentType<Props>>) {
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
  const Part = (props: Props) => createElement(current, props)
  return Object.assign(Part, { load })
}

/** What failed is tried again when it is shown next. Says whether anything had. */
export function loadAgain(): boolean {
  const hadFailed = failed.size > 0
  for (const renew of failed) renew()
  failed.clear()
  return hadFailed
}
