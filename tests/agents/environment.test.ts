import { expect, it } from 'vitest'
import { agentEnvironment } from '../../src/agents/environment.ts'
import { defineConfig } from '../../src/config/config.ts'

const ENV = {
  PATH: '/bin',
  SECRET: 's',
  TOKEN: 't',
  SORTER_URL: 'https://example.org',
  SORTER_SECRET: 'z',
  LATER: 'l',
}
const configOf = (token: string) =>
  defineConfig(
    {
      agents: { Sorter: {} },
      github: {
        secret_env: 'SECRET',
        token_env: token,
        callbacks: { Sorter: { url_env: 'SORTER_URL', secret_env: 'SORTER_SECRET' } },
      },
    },
    { file: '/nowhere/orc.yaml', env: {} },
  )

it('has nothing that GitHub or a member with an address is reached with (issue 6, §3)', () => {
  const environment = agentEnvironment(() => configOf('TOKEN'), ENV)
  expect({ ...environment }).toEqual({ PATH: '/bin', LATER: 'l' })
  expect(environment.PATH).toBe('/bin')
  expect(environment.SORTER_SECRET).toBeUndefined()
  expect('TOKEN' in environment).toBe(false)
})

it('is that of the orc.yaml of the moment, and keeps what an older one named to itself', () => {
  let token = 'TOKEN'
  const environment = agentEnvironment(() => configOf(token), ENV)
  expect(Object.keys(environment)).toContain('LATER')
  token = 'LATER'
  expect({ ...environment }).toEqual({ PATH: '/bin' })
})
