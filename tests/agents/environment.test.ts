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

it('contains no credentials for GitHub or for webhooks (issue 6, §3)', () => {
  const environment = agentEnvironment(() => configOf('TOKEN'), ENV)
  expect({ ...environment }).toEqual({ PATH: '/bin', LATER: 'l' })
  expect(environment.PATH).toBe('/bin')
  expect(environment.SORTER_SECRET).toBeUndefined()
  expect('TOKEN' in environment).toBe(false)
})

it('follows the current orc.yaml, and keeps hiding variables that an older one named', () => {
  let token = 'TOKEN'
  const environment = agentEnvironment(() => configOf(token), ENV)
  expect(Object.keys(environment)).toContain('LATER')
  token = 'LATER'
  expect({ ...environment }).toEqual({ PATH: '/bin' })
})
