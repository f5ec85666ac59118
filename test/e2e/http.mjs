// What only a server over HTTP can do to a client: refuse its token, and be
// another server than the one that the client knew.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { baseTools, enabled, join, start, token } from './harness.mjs';

export function web(how) {
  test('another token', async t => {
    const { at, session, person } = await start(t, how);
    const other = { ...at, headers: { authorization: 'Bearer not-the-token' } };
    await assert.rejects(how.connect(other, person, true), error => {
      assert.equal(how.status(error), 401, error);
      return true;
    });
    assert.deepEqual(await session.names(), baseTools, 'the one with the token is served as before');
    await session.close();
  });

  // A client of the older era hears that its session is gone, and has to begin
  // anew. In the newer there is none: the client goes on, in a chat in which
  // nothing is enabled.
  test('a server that starts again', async t => {
    const { world, at, session } = await enabled(t, how);
    assert.ok((await session.names()).includes('field-notes__note'));
    await at.stop();
    Object.assign(at, await world.listen(token));
    let again = session;
    if (how.wanted < '2026') {
      await assert.rejects(session.call('capability_packs_list'), error => {
        assert.equal(how.status(error), 404, error);
        return true;
      });
      await session.client.close();
      again = (await join(t, how, at)).session;
    }
    assert.deepEqual(await again.names(), baseTools);
    await again.ok('capability_packs_open_docs', { pack_id: 'plain' });
    await again.client.close();
    await at.stop();
  });
}
