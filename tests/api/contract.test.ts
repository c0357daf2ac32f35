import { globSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROUTES, type Route } from '../../src/api/contract.ts'

const src = join(import.meta.dirname, '../../src')

/** The routes of every room, by the name of their table. */
async function tables(): Promise<[string, Record<string, Route>][]> {
  const found: [string, Record<string, Route>][] = []
  for (const file of globSync(['*/api.ts', '*/api/*.ts', 'api/contract.ts'], { cwd: src })) {
    for (const [name, value] of Object.entries(await import(join(src, file)))) {
      if (name.endsWith('_ROUTES')) found.push([name, value as Record<string, Route>])
    }
  }
  return found
}

describe('the table of routes', () => {
  it('has every route of every room, each name once', async () => {
    const names = (await tables()).flatMap(([, routes]) => Object.keys(routes))
    expect(names.length).toBeGreaterThan(0)
    expect(names.toSorted()).toEqual(Object.keys(ROUTES).toSorted())
  })

  it('has one route per method and path', () => {
    const routes = Object.values<Route>(ROUTES).map(({ method, path }) => `${method} ${path}`)
    expect(routes.toSorted()).toEqual([...new Set(routes)].toSorted())
  })
})
